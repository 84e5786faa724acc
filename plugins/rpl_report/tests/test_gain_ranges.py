"""Streams side by side without API calls: every screen tells the same two ends of each gain."""

from __future__ import annotations

import csv
import gzip
import html
import json
import re
import shlex

import pytest

from rpl_testkit.simulation.runtime import Costs, Step, play

#: A figure of the text report, of one end or of both.
_RANGE = re.compile(r"(\d+\.\d{3})x(?:-(\d+\.\d{3})x)?")


def _three_streams(kernels: dict[str, tuple[int, int]], waits: bool) -> tuple[tuple[Step, ...]]:
    """``kernels``: stream and duration in us; ten rounds, each stream waiting for the one before if asked."""
    steps = [Step("create_stream", stream=stream, non_blocking=True) for stream in (1, 2, 3)]
    for _ in range(10):
        for name, (stream, duration_us) in kernels.items():
            if waits and stream > 1:
                steps += [Step("record", stream=stream - 1, event=1), Step("wait", stream=stream, event=1)]
            steps.append(Step("launch", stream=stream, name=name, duration_ns=duration_us * 1000))
    return (tuple(steps),)


_PROGRAMS = {
    "waiting": ({"first": (1, 40), "second": (2, 90), "third": (3, 30)}, True),
    "side by side": ({"long": (1, 100), "short": (2, 2), "middle": (3, 60)}, False),
    "one hidden": ({"a": (1, 50), "hidden": (2, 45), "b": (1, 5), "tiny": (3, 1)}, True),
}


def _write_kernel_trace(path, played) -> None:
    columns = ("Kind", "Agent_Id", "Queue_Id", "Stream_Id", "Thread_Id", "Dispatch_Id", "Kernel_Id")
    columns += ("Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp")
    with path.open("w", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        rows.writerow(columns)
        for number, work in enumerate(played.recording.work, 1):
            names = ("KERNEL_DISPATCH", "Agent 1", work.queue + 1, work.stream, 1, number, 1, work.name)
            rows.writerow((*names, number, work.begin_ns, work.end_ns))


def _unpacked(tmp_path, packed):
    path = tmp_path / packed.name.removesuffix(".gz")
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


@pytest.fixture(
    params=[
        *_PROGRAMS,
        pytest.param("llamacpp-prefill_kernel_trace.csv.gz", marks=pytest.mark.data),
        pytest.param("tracelens-908_results.json.gz", marks=[pytest.mark.data, pytest.mark.long]),
    ]
)
def screens(request, tmp_path, rpl_cli):
    """The text report, the page, the documents, and the run directory."""
    if request.param in _PROGRAMS:
        recording = tmp_path / "run_kernel_trace.csv"
        played = play(_three_streams(*_PROGRAMS[request.param]), Costs(between_calls_ns=100))
        _write_kernel_trace(recording, played)
    else:
        folder = request.getfixturevalue("rpl_shared_data") / "timing"
        recording = _unpacked(tmp_path, folder / request.param)
    text = rpl_cli("analyze", recording, "-o", tmp_path / "out").assert_ok().stdout
    page = rpl_cli("report", "--format", "html", tmp_path / "out").assert_ok().stdout
    if "<html" not in page:
        page = next((tmp_path / "out").glob("**/*.html")).read_text()
    documents = {n: json.loads((tmp_path / "out" / f"{n}.json").read_text()) for n in ("dag", "analysis")}
    return text, html.unescape(page), documents, tmp_path / "out"


def _ends(dag, answer) -> tuple[int, int]:
    return answer["application_gain_ns"], answer["application_gain_at_most_ns"]


def _factors(dag, ends) -> list[str]:
    made = [f"{dag['makespan_ns'] / (dag['makespan_ns'] - gain):.3f}" for gain in ends]
    return list(dict.fromkeys(made))


def test_every_screen_tells_both_ends_in_the_same_order(screens, rpl_cli):
    text, page, documents, run = screens
    dag, steps = documents["dag"], documents["analysis"]["next_steps"]
    assert not dag["order_known"]
    free = [next(a for a in f["speedups"] if a["speedup"] is None) for f in dag["forecasts"]]
    twice = [next(a for a in f["speedups"] if a["speedup"] == 2) for f in dag["forecasts"]]
    most = [answer["application_gain_at_most_ns"] for answer in twice]
    assert most == sorted(most, reverse=True)

    # The headline is the range of the kernel that it names, which JSON holds, too.
    number = [f["name"] for f in dag["forecasts"]].index(dag["dominant_work"]["name"])
    told = " ".join(text.split())
    headline = re.search(r"(?:application|run) would be (\S+)x(?: to (\S+)x)? as fast", told)
    assert [end for end in headline.groups() if end] == _factors(dag, _ends(dag, free[number]))
    assert dag["dominant_work"]["application_ceiling"] == pytest.approx(float(headline[1]), abs=6e-4)

    # The table of what-ifs, row by row.
    table = text.split("what if faster by (at least - at most)")[1].splitlines()[1:6]
    table = [row for row in table if _RANGE.search(row) and not row.startswith("(")]
    limits = [dag["makespan_ns"] - answer["application_gain_at_most_ns"] for answer in free]
    notable = [a for a, left in zip(free, limits, strict=True) if left * 1.005 <= dag["makespan_ns"]]
    assert len(table) == min(5, len(notable))
    for row, answer in zip(table, notable, strict=False):
        shown = _RANGE.findall(row)[-1]
        assert [end for end in shown if end] == _factors(dag, _ends(dag, answer))

    # Next steps: the recording that closes the ranges, then by upper ends.
    assert steps[0]["share"] is None
    assert steps[0]["gain_at_most_ns"] >= 0.05 * dag["makespan_ns"]
    (command,) = {step["command"] for step in steps[0]["steps"]}
    assert shlex.split(command)[:2] == ["rpl", "profile"]
    assert f"Run: {command.replace('{command}', 'COMMAND')}" in told
    upper = [s["gain_ns"] if s["gain_at_most_ns"] is None else s["gain_at_most_ns"] for s in steps[1:]]
    assert upper == sorted(upper, reverse=True)
    by_name = {f["name"]: _ends(dag, a) for f, a in zip(dag["forecasts"], twice, strict=True)}
    for step in steps[1:]:
        if step["kind"] == "kernel":
            assert (step["gain_ns"], step["gain_at_most_ns"]) == by_name[step["subject"]]

    # What `rpl what-if` and `rpl explain` say of the first row.
    first = dag["forecasts"][0]["name"]
    asked = rpl_cli("what-if", f"{first}=free", "--run", run, "--json").json()["together"]
    assert (asked["application_gain_ns"], asked["application_gain_at_most_ns"]) == _ends(dag, free[0])
    explained = " ".join(rpl_cli("explain", first, "--run", run).assert_ok().stdout.split())
    ends = " to ".join(f"{end}x" for end in _factors(dag, _ends(dag, free[0])))
    assert f"at no cost, it makes the application {ends} as fast" in explained
    _check_nothing_to_gain(text, page, dag)


def _check_nothing_to_gain(text, page, dag) -> None:
    """It is said only where the upper end says it."""
    limits = {}
    for forecast in dag["forecasts"]:
        (free,) = (a for a in forecast["speedups"] if a["speedup"] is None)
        left = dag["makespan_ns"] - free["application_gain_at_most_ns"]
        limits[forecast["name"]] = dag["makespan_ns"] / left if left else float("inf")
    found = re.search(r"Off the critical path: (.*?) A faster version alone", page, re.S)
    for name, limit in limits.items():
        if found and name in found[1]:
            assert limit < 1.005, name
    best = max(limits, key=limits.__getitem__)
    notable = limits[best] >= 1.005
    told = " ".join(text.split("\n\n")[0].split())
    assert ("In half its time the run takes" in " ".join(page.split())) == notable
    assert "no kernel alone brings 0.5%" not in told or not notable


def test_every_form_calls_the_gain_of_one_stream_without_calls_an_upper_end(
    rpl_make_rocpd, rpl_cli, tmp_path
):
    """The host may have needed each gap for itself: nothing was recorded that tells."""
    run = tmp_path / "out"
    recording = rpl_make_rocpd([(name, at, at + 4000) for at, name in ((0, "a"), (9000, "b"), (20_000, "a"))])
    text = " ".join(rpl_cli("analyze", recording, "-o", run).assert_ok().stdout.split())
    assert "the run would be at most 1.500x as fast" in text
    assert "what if faster by (at most)" in text
    page = html.unescape(rpl_cli("report", "--format", "html", run).assert_ok().stdout)
    assert "so gains are at most these" in page
    explained = rpl_cli("explain", "a", "--run", run).assert_ok().stdout
    assert "at no cost, it makes the application at most 1.500x as fast" in explained
    asked = rpl_cli("what-if", "a=free", "--run", run).assert_ok().stdout
    assert "Gains are at most these" in asked
    document = rpl_cli("what-if", "a=free", "--run", run, "--json").json()
    assert (document["at_most"], document["together"]["application_gain_ns"]) == (True, 8000)


@pytest.mark.data
def test_explain_says_nothing_that_is_not_so(rpl_shared_data, tmp_path, rpl_cli):
    """A kernel that is the whole run leaves nothing, and an unknown figure confirms nothing."""

    def explained(recording):
        rpl_cli("analyze", recording, "-o", tmp_path / recording.name).assert_ok()
        return " ".join(rpl_cli("explain", "--run", tmp_path / recording.name).assert_ok().stdout.split())

    timing = rpl_shared_data / "timing"
    whole = explained(timing / "dispatch_0" / "MI200")
    assert "at no cost, nothing would be left of the application's recorded time" in whole
    assert "no limit as fast" not in whole
    half = explained(timing / "batched-gemm-bmm21_results.db.gz")
    assert "confirmed by: grid_fill 42.1%" in half
    assert "would confirm it: waves, not recorded (counters SQ_WAVES)" in half
