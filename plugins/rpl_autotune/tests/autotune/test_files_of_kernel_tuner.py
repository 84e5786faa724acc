"""Recorded spaces: read, searched without running anything, and written."""

from __future__ import annotations

import gzip
import json

import pytest

from rpl_autotune.cache.recorded_space import read_recorded
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
