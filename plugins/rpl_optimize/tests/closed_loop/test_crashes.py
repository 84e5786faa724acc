"""kill -9, Ctrl-C and a full disk at every stage: the source stays, the ledger reads, the session completes.

One session is struck again and again, and resumed each time; that is harder than one crash, and quicker.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

pytestmark = pytest.mark.clang

STRUCK = Path(__file__).with_name("rpl_with_a_fault.py")
INTERRUPTED, NO_SPACE, REJECTED = 130, 69, 1
KILLED = -signal.SIGKILL
TIME_LIMIT_S = 280


@attrs.frozen
class Struck:
    """A session in a process of its own that meets faults; between them the promises are checked."""

    loop: object
    options: tuple[str, ...]

    def words(self) -> tuple[str, ...]:
        if (self.loop.root / "ledger.jsonl").exists():
            plugin = ("-p", "rpl_testkit.scripted_proposer")
            return (*plugin, "optimize", "--resume", str(self.loop.root), "--auto-approve", "--debug")
        return self.loop.words(*self.options, "--debug")

    @contextlib.contextmanager
    def started(self, fault: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
        """A process group of its own; what a killed rpl leaves running is ours to clear."""
        command = [sys.executable, str(STRUCK), json.dumps(fault), *self.words()]
        with subprocess.Popen(
            command,
            cwd=self.loop.bench.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def at(self, place: str, when: str, how: str) -> None:
        """Strike at an event of the ledger, or at a file if ``place`` has a dot."""
        fault = {"file" if "." in place else "event": place, "when": when, "how": how}
        with self.started(fault) as process:
            _, err = process.communicate(timeout=TIME_LIMIT_S)
        assert f"struck {when} {place}" in err, err
        expected = {"kill": KILLED, "interrupt": INTERRUPTED, "full": NO_SPACE}[how]
        assert process.returncode == expected, err
        assert "Traceback" not in err, err
        self.check_promises()

    def during(self, stage: str) -> None:
        """Kill it when it says that ``stage`` begins."""
        said = [""]
        with self.started({"when": "never", "how": "kill"}) as process:
            while said[-1] is not None and stage not in said[-1]:
                said.append(process.stderr.readline() or None)
            process.kill()
        assert said[-1] is not None, "".join(said[:-1])
        self.check_promises()

    def check_promises(self) -> None:
        """The user's version is where it was, or in place of it what was accepted, with a backup."""
        if not self.loop.is_untouched:
            (accepted,) = self.loop.events("accepted")
            backup = self.loop.source.with_name("smooth.hip.rpl-backup")
            assert backup.read_bytes() == self.loop.original
            assert self.loop.source_sha256 == accepted["source_sha256"]
        verified = self.loop.cli("ledger", "verify", str(self.loop.root))
        if verified.exit_code != 0:
            # Half a line is all that may be wrong; the next opening cuts it off and says so.
            assert verified.exit_code == 65, verified.stderr
            assert "torn" in verified.stderr or "incomplete" in verified.stderr, verified.stderr
            assert self.loop.cli("ledger", "show", str(self.loop.root)).exit_code == 0


@pytest.mark.long
def test_one_session_struck_in_every_way(loop) -> None:
    loop.script("wrong results")
    struck = Struck(loop, loop.CHECKED)
    struck.at("proposed", "after", "kill")
    struck.at("built", "torn", "kill")
    struck.at("binary_guarded", "before", "interrupt")
    struck.at("equivalence_checked", "torn", "full")
    loop.resume().assert_exit(REJECTED)
    _completed(loop, "wrong results", "equivalence")
    # What was proposed and not yet guarded when rpl died is proposed anew, not judged without guards.
    (judged,) = loop.events("judged")
    guards = [guard["guard"] for guard in judged["evidence"]["source_guards"]]
    assert guards[0] == "scripted", "the proposer's own"
    assert "outside" in guards, "and what the transformations say"


#: The events of a candidate that is refused for its results, in the order in which each can be the last
#: that a session recorded. `target_chosen` and `source_guarded` are written in one breath with the next.
EVENTS = (
    *("session_started", "baseline_profiled", "target_chosen", "source_guarded", "built"),
    *("binary_guarded", "equivalence_checked", "judged", "rolled_back"),
)


@pytest.mark.long
@pytest.mark.parametrize("how", ["kill", "interrupt", "full"])
def test_a_rejected_candidate_struck_at_every_event(loop, how: str) -> None:
    loop.script("wrong results")
    struck = Struck(loop, loop.CHECKED)
    # A full disk takes back the line, so the first would be none: see the next test.
    for event in EVENTS[1:] if how == "full" else EVENTS:
        struck.at(event, "after", how)
    struck.at("finished", "before", how)
    loop.resume().assert_exit(REJECTED)
    _completed(loop, "wrong results", "equivalence")


@pytest.mark.long
@pytest.mark.parametrize("how", ["kill", "full"])
def test_before_anything_was_recorded_a_new_session_is_needed(loop, how: str) -> None:
    loop.script("does not build")
    struck = Struck(loop, loop.CHECKED)
    fault = {"event": "session_started", "when": "before", "how": how}
    with struck.started(fault) as process:
        process.communicate(timeout=TIME_LIMIT_S)
    assert loop.is_untouched
    outcome = loop.resume().assert_exit(65)
    assert "start a new session" in outcome.stderr


ACCEPTING = ("--allow-unverified", "--in-place", "--no-traffic-gate", "--max-iters", "1")


@pytest.mark.long
def test_an_accepted_candidate_in_place_killed_while_others_work(killable_loop) -> None:
    """The compiler, the profiler and the program are running when rpl dies."""
    loop = killable_loop
    loop.script("much faster")
    struck = Struck(loop, ACCEPTING)
    struck.during("baseline: build")
    struck.during("run_2")
    struck.during("candidate 1: proposal")
    struck.during("candidate 1: build")
    struck.during("candidate 1: binary guards")
    struck.during("candidate 1: equivalence")
    struck.during("base run_3")
    loop.resume().assert_ok()
    _completed(loop, "much faster", "remeasurement")


@pytest.mark.long
def test_a_measurement_goes_on_where_it_was_struck(killable_loop) -> None:
    """Once before its first run and once in a pair: the same plan, no pair lost, and no part of the error."""
    loop = killable_loop
    loop.script("much faster")
    struck = Struck(loop, (*ACCEPTING, "--no-placement-check"))
    struck.at("planned", "after", "kill")
    struck.during("new run_4")
    struck.during("candidate 1: fresh measurement")
    loop.resume().assert_ok()
    _completed(loop, "much faster", "remeasurement")
    (plan,) = [one for one in loop.events("planned") if one["stage"] == "measurement"]
    assert plan["directory"] == "candidates/001/measure"
    before, again, last = loop.events("continued")
    assert (before["under_way"], before["pairs"], before["directory"]) == (
        "measurement",
        0,
        plan["directory"],
    )
    assert (again["under_way"], again["pairs"]) == ("measurement", 3)
    assert last["finished"] == ["measurement"]
    (measured,) = loop.events("measured")
    assert measured["measurement"]["seed"] == plan["seed"]
    assert list(measured["recordings"]) == [plan["directory"]]


@pytest.mark.long
def test_an_accepted_candidate_in_place_killed_between_its_measurements(loop) -> None:
    loop.script("much faster")
    struck = Struck(loop, ACCEPTING)
    struck.at("measured", "torn", "kill")
    struck.during("candidate 1: fresh measurement")
    struck.at("remeasured", "after", "kill")
    struck.at("judged", "before", "kill")
    loop.resume().assert_ok()
    _completed(loop, "much faster", "remeasurement")


@pytest.mark.long
def test_an_accepted_candidate_in_place_killed_while_it_is_written(loop) -> None:
    loop.script("much faster")
    struck = Struck(loop, ACCEPTING)
    struck.at("accepted", "torn", "kill")
    struck.at("accepted", "after", "kill")
    struck.at("smooth.hip.rpl-backup", "before", "kill")
    struck.at("smooth.hip.rpl-backup", "after", "kill")
    struck.at("smooth.hip", "before", "kill")
    assert loop.is_untouched
    struck.at("smooth.hip", "after", "kill")
    assert not loop.is_untouched
    struck.at("written", "after", "kill")
    struck.during("run_2")
    loop.resume().assert_ok()
    _completed(loop, "much faster", "remeasurement")


@pytest.mark.long
@pytest.mark.parametrize("how", ["interrupt", "full"])
def test_an_accepted_candidate_in_place_struck_while_it_is_written(loop, how: str) -> None:
    loop.script("much faster")
    struck = Struck(loop, ACCEPTING)
    struck.at("accepted", "after", how)
    struck.at("smooth.hip.rpl-backup", "before", how)
    struck.at("smooth.hip", "before", how)
    assert loop.is_untouched
    struck.at("written", "before", how)
    loop.resume().assert_ok()
    _completed(loop, "much faster", "remeasurement")


def test_a_profiler_without_space_ends_it_and_it_goes_on_later(loop, tmp_path: Path) -> None:
    """The disk fills while the profiler writes, in the second run of the baseline."""
    loop.script("does not build")
    environment = {"RPL_STANDIN_MISBEHAVE": "disk_full:run=2", "RPL_STANDIN_STATE": str(tmp_path / "runs")}
    outcome = loop.cli(*loop.words(*loop.CHECKED), cwd=loop.bench.folder, env=environment)
    outcome.assert_exit(NO_SPACE)
    assert loop.is_untouched
    loop.verify()
    loop.resume().assert_exit(REJECTED)
    _completed(loop, "does not build", "source_guards")


def _completed(loop, kind: str, stage: str) -> None:
    """As if nothing had happened: one candidate, judged as it deserves, in a ledger without a gap."""
    document = loop.document()
    assert document["state"] == "finished"
    assert [c["summary"] for c in document["candidates"]] == [kind]
    assert document["candidates"][0]["judgement"]["stage"] == stage
    if document["verdict"] != "accepted":
        assert loop.is_untouched
    loop.verify()
