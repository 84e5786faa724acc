"""Several recordings are processes of one run only by evidence, and what was assumed is said."""

from __future__ import annotations

import attrs
import pytest

from rpl_core.ingest import as_ranks, by_evidence
from rpl_core.model.diagnostic import Severity
from rpl_core.model.recording import Recording
from rpl_testkit.traces import TracedDispatch, make_trace


def lived(begin, end, *, pid, node="a", rows=None):
    """A trace of one process; ``rows`` are the times of its dispatch where the lifetime is unknown."""
    trace = make_trace([TracedDispatch("kernel", *(rows or (begin, end)))])
    process = attrs.evolve(trace.processes[0], pid=pid, node=node, begin_ns=begin, end_ns=end)
    return attrs.evolve(trace, processes=(process,))


def settled(*traces):
    recording = by_evidence(Recording(traces=traces))
    (said,) = recording.diagnostics
    return [[p.pid for p in run.processes] for run in recording.timing_runs], said


@pytest.mark.parametrize(
    ("traces", "runs"),
    [
        ((lived(0, 10, pid=1), lived(5, 20, pid=2)), [[1, 2]]),
        ((lived(0, 10, pid=1), lived(10, 20, pid=2)), [[1], [2]]),
        ((lived(0, 100, pid=1), lived(10, 20, pid=2), lived(50, 60, pid=3)), [[1, 2, 3]]),
        (
            (lived(0, 10, pid=1), lived(20, 30, pid=2), lived(5, 9, pid=3), lived(25, 29, pid=4)),
            [[1, 3], [2, 4]],
        ),
        # One number can't be two processes at the same time.
        ((lived(0, 10, pid=1), lived(5, 20, pid=1)), [[1], [1]]),
        # Without lifetimes the work tells.
        ((lived(None, None, pid=1, rows=(0, 10)), lived(None, None, pid=2, rows=(5, 9))), [[1, 2]]),
        ((lived(0, None, pid=1, rows=(4, 10)), lived(10, None, pid=2, rows=(11, 19))), [[1], [2]]),
    ],
)
def test_times_on_one_clock_tell(traces, runs):
    found, said = settled(*traces)
    assert found == runs
    assert said.severity is Severity.INFO
    assert ("one run" if len(runs) == 1 else f"{len(runs)} runs") in said.fact
    assert "--ranks" in said.remedy


def test_clocks_of_two_machines_tell_nothing():
    found, said = settled(lived(0, 10, pid=1), lived(0, 10, pid=2, node="b"))
    assert found == [[1], [2]]
    assert said.severity is Severity.WARNING
    assert "several machines" in said.cause


def test_a_process_without_times_tells_nothing():
    empty = attrs.evolve(make_trace([]), processes=(attrs.evolve(make_trace([]).processes[0], pid=7),))
    found, said = settled(lived(0, 10, pid=1), empty)
    assert found == [[1], [7]]
    assert said.severity is Severity.WARNING


def test_one_recording_needs_no_word():
    recording = Recording(traces=(lived(0, 10, pid=1),))
    assert by_evidence(recording) is recording


def test_the_users_word_counts():
    apart = (lived(0, 10, pid=1), lived(20, 30, pid=2, node="b"), lived(20, 30, pid=2))
    (run,) = as_ranks(Recording(traces=apart)).timing_runs
    assert [process.pid for process in run.processes] == [1, 2, 2]


def test_ranks_in_two_folders_from_the_command_line(rpl_make_rocpd, rpl_cli, tmp_path):
    folders = [tmp_path / "rank0", tmp_path / "rank1"]
    for pid, folder in enumerate(folders, start=1):
        folder.mkdir()
        path = rpl_make_rocpd([("kernel", 0, 1000 * pid)], name=f"{pid}_results.db", pid=pid)
        path.rename(folder / path.name)
    assumed = rpl_cli("analyze", "--json", *folders).assert_ok()
    chosen = rpl_cli("analyze", "--json", "--ranks", *folders).assert_ok()
    apart = rpl_cli("analyze", "--json", "--each-is-a-run", *folders).assert_ok()
    assert [o.json()["stability"]["runs"] for o in (assumed, chosen, apart)] == [1, 1, 2]
    assert assumed.json()["runtime_ms"] == chosen.json()["runtime_ms"] == pytest.approx(3000e-6)
    assert "2 recordings are taken for one run" in assumed.stderr
    assert "taken for" not in chosen.stderr + apart.stderr
    contradiction = rpl_cli("analyze", "--ranks", "--each-is-a-run", *folders).assert_exit(64)
    assert "contradict" in contradiction.stderr
    for again in (folders[0], next(folders[0].iterdir())):
        refused = rpl_cli("analyze", "--each-is-a-run", *folders, again).assert_exit(64)
        assert "1_results.db is named twice" in refused.stderr
