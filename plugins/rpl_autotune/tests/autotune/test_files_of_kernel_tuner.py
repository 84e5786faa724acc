"""Recorded spaces: read, searched without running anything, and written."""

from __future__ import annotations

import gzip
import json
import math
import os

import pytest

from rpl_autotune.recorded_space import read_recorded
from rpl_core.errors import BadDataError

CACHE = {
    "device_name": "card",
    "kernel_name": "k",
    "tune_params_keys": ["x", "y"],
    "tune_params": {"x": [1, 2], "y": [1, 2]},
    "objective": "time",
    "cache": {
        "1,1": {"x": 1, "y": 1, "time": 4.0, "times": [3.9, 4.0, 4.1]},
        "1,2": {"x": 1, "y": 2, "time": 2.0, "times": [2.0]},
        "2,1": {"x": 2, "y": 1, "time": "CompilationFailedConfig"},
        "2,2": {"x": 2, "y": 2, "time": 3.0},
    },
}


@pytest.fixture
def cache(tmp_path):
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(CACHE))
    return path


def test_a_recorded_space_is_searched_without_running_anything(rpl_cli, cache, tmp_path):
    exports = ("--export-cache", tmp_path / "kt.json", "--export-t4", tmp_path / "t4.json")
    done = rpl_cli(
        "autotune", "--recorded", cache, "--exhaustive", "--json", "-o", tmp_path / "out", *exports
    )
    found = done.assert_ok().json()
    assert found["best_config"]["parameters"] == {"x": 1, "y": 2}
    assert found["best_config"]["fresh"] is False
    assert found["failed_configs"] == 1
    for name in ("kt.json", "t4.json"):
        again = read_recorded(tmp_path / name)
        times = {row: result.time_ms for row, result in again.results.items()}
        assert times == {(1, 1): 4.0, (1, 2): 2.0, (2, 1): None, (2, 2): 3.0}


def test_an_unfinished_cache_file_is_read(cache):
    text = json.dumps({**CACHE, "cache": {"1,1": CACHE["cache"]["1,1"]}})
    cache.write_text(text.removesuffix("}}") + ",")
    assert read_recorded(cache).results[1, 1].time_ms == 4.0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cache": {"a": {}}, "tune_params_keys": ["x"]}', "{{{"])
def test_other_files_are_refused(cache, text):
    cache.write_text(text)
    with pytest.raises(BadDataError):
        read_recorded(cache)


@pytest.mark.data
def test_recorded_spaces_of_real_gpus(rpl_shared_data):
    path = rpl_shared_data / "autotune" / "convolution_milo_MI250X.json.gz"
    recorded = read_recorded(path)
    content = json.loads(gzip.decompress(path.read_bytes()))
    times = [entry["time"] for entry in content["cache"].values()]
    assert [result.time_ms for result in recorded.results.values()] == times
    assert len(recorded.description().configurations) == 4362


def test_the_best_of_a_recorded_search_is_the_smallest_time_of_the_file(rpl_cli, cache, tmp_path):
    """Single times that lie lower than the time which the file states count for nothing."""
    content = json.loads(json.dumps(CACHE))
    content["cache"]["1,2"]["times"] = [0.5, 0.5, 5.0]
    cache.write_text(json.dumps(content))
    done = rpl_cli("autotune", "--recorded", cache, "--exhaustive", "--json", "-o", tmp_path / "out")
    found = done.assert_ok().json()
    assert found["best_config"]["runtime_ms"] == 2.0
    assert sorted(e["runtime_ms"] for e in found["evaluations"] if e["runtime_ms"]) == [2.0, 3.0, 4.0]


@pytest.mark.parametrize("time", [-1, 0, -0.0, -1e300])
def test_a_time_of_nothing_or_less_is_a_failed_configuration(rpl_cli, cache, tmp_path, time):
    content = json.loads(json.dumps(CACHE))
    content["cache"]["1,1"]["time"] = time
    cache.write_text(json.dumps(content))
    done = rpl_cli("autotune", "--recorded", cache, "--exhaustive", "--json", "-o", tmp_path / "out")
    found = done.assert_ok().json()
    assert found["best_config"]["runtime_ms"] == 2.0
    assert found["failed_configs"] == 2
    assert "no run takes" in next(
        e["reason"] for e in found["evaluations"] if e["parameters"] == {"x": 1, "y": 1}
    )


def t4(configuration=None, **more):
    entry = {"configuration": configuration or {"x": 1}, "measurements": [{"name": "time", "value": 1.0}]}
    return {"results": [entry, {**entry, "configuration": {"x": 2}, **more}]}


WRONG = [
    ({**CACHE, "device_name": {"name": "card"}}, "device_name is an object"),
    ({**CACHE, "tune_params_keys": "xy"}, "tune_params_keys is no list"),
    ({**CACHE, "tune_params_keys": ["x", "x"]}, "names a parameter twice"),
    (
        {**CACHE, "cache": {"1,1": {"x": 10**400, "y": 1, "time": 1.0}}},
        "cache['1,1'].x is a number of 401 digits",
    ),
    ({**CACHE, "cache": {"1,1": {"x": [1], "y": 1, "time": 1.0}}}, "cache['1,1'].x is a list"),
    ({**CACHE, "cache": {"1,1": [1, 1]}}, "cache['1,1'] is a list"),
    (
        {**CACHE, "cache": {"1,1": {"x": 1, "y": 1, "time": 10**400}}},
        "cache['1,1'].time is a number of 401 digits",
    ),
    (
        {**CACHE, "cache": {"1,1": {"x": 1, "y": 1, "time": -(10**400)}}},
        "cache['1,1'].time is a number of 401",
    ),
    (t4([1, 2]), "results[0].configuration is a list"),
    (t4(configuration={"x": 10**400}), "results[0].configuration.x is a number of 401 digits"),
    (t4(measurements=[[1]]), "results[1].measurements is a list"),
    ({**t4(), "metadata": {"device": ["card"]}}, "metadata.device is a list"),
    ({"results": [7]}, "results[0] is a number"),
    (t4(measurements=[{"name": "time", "value": 10**400}]), "results[1].measurements is a number of 401"),
    (t4(measurements={"name": "time"}), "results[1].measurements is an object, not a list"),
    (
        t4(measurements=[{"name": "time", "value": 1.0, "unit": "parsec"}]),
        "results[1].measurements.unit is 'parsec', no unit of time",
    ),
    ({**t4(), "metadata": {"timeunit": 5}}, "metadata.timeunit is a number, no unit of time"),
]


@pytest.mark.parametrize(("content", "says"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_in_a_recorded_file_is_named_with_its_place(rpl_cli, cache, tmp_path, content, says):
    cache.write_text(json.dumps(content))
    done = rpl_cli("autotune", "--recorded", cache, "-o", tmp_path / "out").assert_exit(65)
    assert says in done.stderr


@pytest.mark.parametrize("option", ["--recorded", "--space", "--cache"])
def test_a_pipe_is_refused_instead_of_waited_for(rpl_cli, cache, tmp_path, option):
    pipe, space = tmp_path / "pipe", tmp_path / "space.json"
    os.mkfifo(pipe)
    space.write_text('[{"A": 1}, {"A": 2}]')
    words = (
        {"--space": space, "--cmd-template": "true {A}", "--time-regex": "x"}
        if option != "--recorded"
        else {}
    )
    words[option] = pipe
    done = rpl_cli("autotune", *(word for pair in words.items() for word in pair), "-o", tmp_path / "out")
    assert "no regular file" in done.assert_exit(65).stderr


@pytest.mark.parametrize(
    ("unit", "metadata", "time_ms"),
    [
        ("", {"timeunit": "miliseconds"}, 3.0),
        ("ms", {"timeunit": "seconds"}, 3.0),
        ("s", {}, 3000.0),
        ("us", {}, 0.003),
        (None, {"timeunit": "nanoseconds"}, 3e-6),
        (None, {}, 3.0),
    ],
)
def test_times_of_t4_are_read_in_their_unit(cache, unit, metadata, time_ms):
    """That of the measurement, else that of the file (as in files of Kernel Tuner: `miliseconds`)."""
    content = t4(measurements=[{"name": "time", "value": 3.0, "unit": unit}])
    cache.write_text(json.dumps({**content, "metadata": metadata}))
    found = read_recorded(cache).result({"x": 2})
    assert found is not None
    assert found.time_ms == pytest.approx(time_ms)


@pytest.mark.parametrize("value", [True, math.nan, math.inf, None])
def test_what_is_no_time_is_a_failed_configuration_and_says_so(cache, value):
    cache.write_text(json.dumps(t4(measurements=[{"name": "time", "value": value}])))
    found = read_recorded(cache).result({"x": 2})
    assert found is not None
    assert (found.time_ms, found.reason) == (None, f"its time is {value}, no number")
