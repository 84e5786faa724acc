"""What faster kernels bring: by hand, against the engine of the forecasts, and through the command line."""

from __future__ import annotations

import json
from math import inf

import pytest

from rpl_analysis.what_if import FasterKernel, ReplayedRun
from rpl_core.errors import BadDataError
from rpl_testkit.traces import TracedDispatch, make_trace


def replayed(*dispatches):
    return ReplayedRun(make_trace(dispatches), include_copies=True)


def test_kernels_side_by_side_gain_only_together():
    run = replayed(TracedDispatch("a", 0, 100, stream=1), TracedDispatch("b", 0, 100, stream=2, queue=2))
    found = run.predict([FasterKernel("a", 2.0), FasterKernel("b", 4.0)])
    assert found.recorded_ns == 100
    assert [answer.gain_ns for answer in found.alone] == [0, 0]
    assert (found.together.application_ns, found.together.speedup) == (50, 2.0)


def test_gains_on_one_stream_add_up_and_gaps_stay():
    run = replayed(("a", 0, 100), ("b", 150, 250))
    found = run.predict([FasterKernel("a", 2.0), FasterKernel("b", inf)])
    assert [answer.application_ns for answer in found.alone] == [200, 150]
    assert found.together.application_ns == 100


def test_slower_is_a_loss_and_one_question_has_one_answer():
    found = replayed(("a", 0, 100), ("b", 100, 200)).predict([FasterKernel("a", 0.5)])
    assert found.alone == ()
    assert (found.together.gain_ns, found.together.application_ns) == (-100, 300)


def test_nothing_left_has_no_speedup():
    found = replayed(("a", 0, 100)).predict([FasterKernel("a", inf)])
    assert (found.together.application_ns, found.together.speedup) == (0, None)


def test_a_trace_without_usable_times_is_refused():
    with pytest.raises(BadDataError, match="no dispatch with usable times"):
        replayed(("a", 5, 5))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    from rpl_testkit.fixtures import CommandLine

    folder = tmp_path_factory.mktemp("demo") / "run"
    with pytest.MonkeyPatch.context() as patch:
        CommandLine(patch)("demo", "--recorded", "-o", folder).assert_ok()
    return folder


def test_single_answers_are_those_of_the_document(demo, rpl_cli):
    forecasts = json.loads((demo / "dag.json").read_text())["forecasts"]
    assert len(forecasts) > 5
    for forecast in forecasts:
        for step in forecast["speedups"]:
            factor = "free" if step["speedup"] is None else f"{step['speedup']}x"
            found = rpl_cli("what-if", f"{forecast['name']}={factor}", "--run", demo, "--json").json()
            for field in ("application_ns", "application_gain_ns", "application_speedup"):
                assert found["together"][field] == step[field], forecast["name"]
            break  # one of each kernel: the engine is tested elsewhere


def test_several_kernels_are_answered_alone_and_together(demo, rpl_cli):
    text = rpl_cli("what-if", "triad=2", "nbody=1.5x", "--run", demo).assert_ok().stdout
    assert "all of these at once" in text
    assert "synthetic: not a measurement" in text
    found = rpl_cli("what-if", "triad=2", "nbody=1.5x", "--run", demo, "--json").json()
    alone = [answer["application_gain_ns"] for answer in found["alone"]]
    assert len(alone) == 2
    assert found["together"]["application_gain_ns"] >= max(alone)
    assert f"{found['together']['application_speedup']:.3f}x" in text


def test_copies_can_be_left_out_here_and_in_the_analysis(demo, rpl_cli, tmp_path):
    without = rpl_cli("what-if", "triad=2", "--run", demo, "--no-copies", "--json").json()
    rpl_cli("analyze", demo, "--no-copies", "-o", tmp_path / "out").assert_ok()
    dag = json.loads((tmp_path / "out" / "dag.json").read_text())
    assert dag["breakdown"]["copy_ns"] == 0
    assert without["recorded_ns"] == dag["makespan_ns"]
    assert json.loads((demo / "dag.json").read_text())["breakdown"]["copy_ns"] > 0
    rpl_cli("what-if", "COPY_HOST=2", "--run", demo, "--no-copies").assert_exit(69)


def test_a_run_remembers_that_copies_were_left_out(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("RPL_COPIES", "false")
    rpl_cli("demo", "--recorded", "--runs", "1", "-o", tmp_path / "run").assert_ok()
    monkeypatch.delenv("RPL_COPIES")
    before = (tmp_path / "run" / "dag.json").read_bytes()
    rpl_cli("analyze", tmp_path / "run").assert_ok()
    assert (tmp_path / "run" / "dag.json").read_bytes() == before
    recorded = rpl_cli("what-if", "triad=2", "--run", tmp_path / "run", "--json").json()["recorded_ns"]
    assert recorded == json.loads(before)["makespan_ns"]


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ("triad", 64, "no KERNEL=FACTOR"),
        ("=2", 64, "no KERNEL=FACTOR"),
        ("triad=0", 64, "no KERNEL=FACTOR"),
        ("triad=nan", 64, "no KERNEL=FACTOR"),
        ("triad=-1", 64, "no KERNEL=FACTOR"),
        ("nothing=2", 69, "matches 'nothing'"),
        ("int=2", 64, "6 kernels match 'int': add_bias; gemm_f16_mfma_128x128; list_rank; ..."),
    ],
)
def test_questions_that_can_not_be_answered(demo, rpl_cli, change, code, says):
    assert says in rpl_cli("what-if", change, "--run", demo).assert_exit(code).stderr


def test_one_kernel_is_asked_for_once(demo, rpl_cli):
    outcome = rpl_cli("what-if", "triad=2", "stream_triad=3", "--run", demo).assert_exit(64)
    assert "more than once" in outcome.stderr
