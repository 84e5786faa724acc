"""Whole searches of a real command, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest


def runs(workplace):
    return (workplace / "log").read_text().splitlines() if (workplace / "log").exists() else []


LOGGED = "bm={BM} bn={BN} log=log"


def test_it_finds_the_known_optimum_of_a_real_command(tune, workplace):
    done = tune("--budget", "30", "--confirm-rounds", "6", "-o", "out").assert_ok()
    found = done.json()
    assert found["best_config"]["parameters"] == {"BM": 64, "BN": 32}
    assert found["best_config"]["runtime_ms"] == 1.0
    assert found["best_config"]["fresh"]
    assert (found["search_space_size"], found["evaluated_configs"]) == (36, 30)
    assert found["failed_configs"] == sum(e["state"] == "failed" for e in found["evaluations"])
    assert found["time_source"] == "printed"
    assert found["final"]["best_over_default"]["proven"]
    # The draws of so small a search can't prove that the model is good everywhere, and it says so.
    assert (found["warning"] is None) == (found["model"]["trust"] == "clear")
    assert found["model"]["r2"] > 0.3
    assert found["model"]["r2_low"] < found["model"]["r2"]
    page = (workplace / "out" / "report.html").read_text()
    assert "Predicted against measured" in page
    assert "BM=64 BN=32" in page


def test_few_evaluations_give_the_warning_with_its_remedies(tune, rpl_cli):
    found = tune("--budget", "6", "-o", "out").assert_ok().json()
    assert found["warning"] == "low_model_confidence"
    assert found["model"]["r2"] is None
    text = rpl_cli("autotune", "--show", "out").assert_ok().stdout
    for remedy in ("seed fraction", "dimensionality", "variance of the runtime"):
        assert remedy in text


def test_without_the_libraries_of_a_model_only_installing_them_helps(tune, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    found = tune("--budget", "6", "--strategy", "neighbours").assert_ok().json()
    assert (found["model"]["trust"], found["warning"]) == ("none", "low_model_confidence")
    assert found["remedies"] == ["pip install 'rpl-autotune[regression]', and search again"]


def test_what_was_measured_is_free(tune, workplace):
    first = tune("--budget", "8", program=LOGGED).assert_ok().json()
    count = len(runs(workplace))
    second = tune("--budget", "8", program=LOGGED).assert_ok().json()
    assert len(runs(workplace)) == count
    assert second["cached_configs"] == 8
    assert [e["runtime_ms"] for e in second["evaluations"]] == [e["runtime_ms"] for e in first["evaluations"]]


@pytest.mark.long
def test_another_program_and_another_kind_of_time_are_measured_anew(tune, workplace):
    tune("--budget", "4", program=LOGGED).assert_ok()
    (workplace / "program.py").write_text((workplace / "program.py").read_text() + "# changed\n")
    assert tune("--budget", "4", program=LOGGED).assert_ok().json()["cached_configs"] == 0
    other = tune("--budget", "4", "--time-unit", "us", program=LOGGED).assert_ok().json()
    assert other["cached_configs"] == 0
    assert other["best_config"]["runtime_ms"] < 0.01


@pytest.mark.long
def test_wall_time_is_never_mixed_with_printed_time(rpl_cli, workplace):
    command = f"{sys.executable} -IS program.py bm={{BM}} bn={{BN}}"
    usual = ("autotune", "--space", "space.json", "--cmd-template", command, "--budget", "3", "--runs", "1")
    more = ("--confirm-rounds", "0", "--cache", "c", "--json", "--no-rocprof")
    found = rpl_cli(*usual, *more).assert_ok().json()
    assert found["time_source"] == "wall"
    assert found["best_config"]["runtime_ms"] > 5  # a Python process; printed are 1 to 3
    again = rpl_cli(*usual, *more, "--time-regex", "took (.*) ms").assert_ok().json()
    assert (again["time_source"], again["cached_configs"]) == ("printed", 0)


def test_failing_hanging_and_wrong_configurations_cost_only_themselves(tune, workplace):
    (workplace / "space.json").write_text('{"parameters": {"BM": [32, 64, 512], "BN": [16, 32, 64]}}')
    check = f"{sys.executable} -ISc \"import sys; sys.exit('wrong sum' if {{BN}} == 16 else 0)\""
    options = ("--exhaustive", "--time-limit", "2", "--validate", check)
    found = tune(*options, program=LOGGED + " hang=64x64").assert_ok().json()
    states = {(e["parameters"]["BM"], e["parameters"]["BN"]): e for e in found["evaluations"]}
    assert len(states) == 9
    assert states[64, 64]["state"] == "time_limit"
    assert states[512, 64]["state"] == "failed"
    assert states[64, 16]["state"] == "wrong"
    assert "wrong sum" in states[64, 16]["reason"]
    assert found["best_config"]["parameters"] == {"BM": 64, "BN": 32}
    count = len(runs(workplace))
    again = tune(*options, program=LOGGED + " hang=64x64").assert_ok().json()
    assert again["cached_configs"] == 9
    assert len(runs(workplace)) == count


@pytest.mark.long
def test_a_longer_time_limit_gives_a_slow_configuration_another_chance(tune, workplace):
    (workplace / "space.json").write_text('{"parameters": {"BM": [64, 128], "BN": [32]}}')
    slow = "bm={BM} bn={BN} sleep=1.5"
    tune("--exhaustive", "--time-limit", "0.5", program=slow).assert_exit(76)
    found = tune("--exhaustive", "--time-limit", "60", program=slow).assert_ok().json()
    assert (found["cached_configs"], found["failed_configs"]) == (0, 0)


def test_nothing_that_runs_is_an_error_with_the_usual_reason(tune, workplace):
    done = tune("--budget", "4", program="bm=512 bn=512 {BM} {BN} x=1").assert_exit(76)
    assert "none of the 4 configurations" in done.stderr
    assert done.stderr.count("\n") < 20


def test_the_whole_space_is_never_measured_unless_asked(tune, workplace):
    (workplace / "space.json").write_text('{"parameters": {"BM": [32, 64], "BN": [32, 64]}}')
    assert tune("--budget", "100").assert_ok().json()["evaluated_configs"] == 3
    assert tune("--exhaustive").assert_ok().json()["evaluated_configs"] == 4


def test_a_time_budget_ends_the_search(tune):
    found = tune("--budget", "30", "--time-budget", "0.001").assert_ok().json()
    assert found["termination_reason"] == "time_budget"
    assert found["evaluated_configs"] == 1


def start(workplace, *words):
    command = f"{sys.executable} -IS program.py bm={{BM}} bn={{BN}} log=log sleep=0.05"
    usual = [
        "--space",
        "space.json",
        "--cmd-template",
        command,
        "--time-regex",
        "took ([0-9.]+) ms",
        "--runs",
        "1",
    ]
    program = [
        sys.executable,
        "-c",
        "import sys; from rpl_core.cli import main; sys.exit(main())",
        "autotune",
    ]
    return subprocess.Popen(
        [*program, *usual, "--budget", "9", "--confirm-rounds", "0", "--cache", "cache.jsonl", *words],
        cwd=workplace,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def stopped_after(workplace, process, lines, number):
    """Send the signal once the cache has so many lines."""
    cache = workplace / "cache.jsonl"
    while process.poll() is None and (not cache.exists() or cache.read_bytes().count(b"\n") < lines):
        time.sleep(0.01)
    process.send_signal(number)
    return process.communicate()


def test_after_kill_9_it_goes_on_where_it_was(tune, workplace):
    whole = tune("--budget", "9", "--no-cache", program=LOGGED + " sleep=0.05").assert_ok().json()
    stopped_after(workplace, start(workplace), 4, signal.SIGKILL)
    with (workplace / "cache.jsonl").open("ab") as stream:
        stream.write(b'{"version":1,"key":"cut off in the mid')  # as if the kill had struck a write
    kept = sum(line.endswith(b"}\n") for line in (workplace / "cache.jsonl").read_bytes().splitlines(True))
    done = tune("--budget", "9", program=LOGGED + " sleep=0.05").assert_ok()
    found = done.json()
    assert "1 unreadable line skipped" in done.stderr
    assert 4 <= kept == found["cached_configs"]
    assert [e["parameters"] for e in found["evaluations"]] == [e["parameters"] for e in whole["evaluations"]]
    assert tune("--budget", "9", program=LOGGED + " sleep=0.05").assert_ok().json()["cached_configs"] == 9


def test_a_kill_in_the_middle_of_the_search_resumes_it(tune, workplace):
    """Long after the seed: what the model was asked, and what it said, is said again."""
    sizes = [16, 32, 48, 64, 96, 128, 192, 256]
    (workplace / "space.json").write_text(json.dumps({"parameters": {"BM": sizes, "BN": sizes}}))
    program = LOGGED + " sleep=0.05"
    whole = tune("--budget", "22", "--no-cache", program=program).assert_ok().json()
    predicted = [e["predicted_interval_ms"] for e in whole["evaluations"]]
    assert any(predicted[:16])
    stopped_after(workplace, start(workplace, "--budget", "22"), 16, signal.SIGKILL)
    kept = (workplace / "cache.jsonl").read_bytes().count(b"\n")
    assert kept >= 16
    found = tune("--budget", "22", program=program).assert_ok().json()
    assert found["cached_configs"] == kept
    for name in ("parameters", "phase", "predicted_ms", "predicted_interval_ms", "runtime_ms"):
        assert [e[name] for e in found["evaluations"]] == [e[name] for e in whole["evaluations"]]
    assert found["model"] == whole["model"]


@pytest.mark.parametrize("printed", ["0", "-1"])
def test_a_time_of_nothing_or_less_fails_the_configuration(tune, workplace, printed):
    text = (workplace / "program.py").read_text()
    said = f'print("kernel took {printed} ms" if bm == 16 else f"kernel took {{1 + steps:.4f}} ms")'
    (workplace / "program.py").write_text(text.replace('print(f"kernel took {1 + steps:.4f} ms")', said))
    (workplace / "space.json").write_text('{"parameters": {"BM": [16, 32], "BN": [32, 64]}}')
    found = tune("--exhaustive").assert_ok().json()
    assert found["failed_configs"] == 2
    assert found["best_config"]["runtime_ms"] > 0


@pytest.mark.long
def test_ctrl_c_keeps_everything_and_says_how_to_go_on(workplace):
    process = start(workplace, "-o", "out")
    _, stderr = stopped_after(workplace, process, 3, signal.SIGINT)
    assert process.returncode == 130
    assert "run the same command again" in stderr
    assert (workplace / "out" / "autotune.json").is_file()
    children = subprocess.run(["pgrep", "-f", f"{workplace}"], capture_output=True, text=True).stdout.split()
    assert [pid for pid in children if int(pid) != os.getpid()] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cmd-template", "./a {BM} {NB}"), "{NB}"),
        (("--cmd-template", "./a {BM}"), "'BN' stands in no template"),
        (("--build", "cc {BM} {BN}"), "no {output}"),
        (("--time-regex", "("), "no regular expression"),
        (("--time-regex", "(a)(b)"), "several groups"),
        (("--cluster", "tcp://a:1", "--devices", "0"), "contradict"),
        (("--devices", "0,0"), "twice"),
        (("--default", "BM"), "not of the form"),
        (("--define", "BM"), "{defines}"),
    ],
)
def test_mistakes_on_the_command_line(tune, words, says):
    done = tune(*words).assert_exit(64)
    assert says in done.stderr


def test_without_its_libraries_nothing_runs_and_another_strategy_works(tune, workplace, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    done = tune("-o", "out").assert_exit(69)
    assert "pip install 'rpl-autotune[regression]', or take the strategy neighbours" in done.stderr
    assert runs(workplace) == []
    words = ("--strategy", "neighbours", "--budget", "20", "--confirm-rounds", "2", "-o", "out")
    found = tune(*words).assert_ok().json()
    assert found["best_config"]["runtime_ms"] < 1.6
    assert found["model"]["trust"] == "none"
    assert "rpl-autotune[regression]" in found["model"]["reason"]
    assert (workplace / "out" / "report.html").is_file()


def test_the_strategy_and_the_executor_must_exist(tune):
    known = tune("--strategy", "none").assert_exit(69).stderr
    assert all(name in known for name in ("optuna", "regression", "neighbours"))
    assert "dask" in tune("--executor", "none").assert_exit(69).stderr
