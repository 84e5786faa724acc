"""The stage: order, controls, blindness, and what a misbehaving plugin costs."""

from __future__ import annotations

import pytest

from rpl_core.errors import InterruptedRunError, MissingError
from rpl_optimize.contracts import CheckPart
from rpl_optimize.equivalence.checks import OutputFilesCheck, ValidationCommandCheck
from rpl_optimize.hookspecs import EQUIVALENCE_CHECKS
from rpl_optimize.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceReport,
    EquivalenceVerdict,
    KernelPairs,
)

RIGHT, AS_RIGHT, WRONG = "echo 2.0 > out.txt", "printf '2.0\\n' > out.txt", "echo 2.5 > out.txt"


def verdicts(parts) -> dict[str, str]:
    return {part.check: part.verdict for part in parts}


def controls(part) -> dict[str, str]:
    return {shown.control: shown.verdict for shown in part.controls}


class Says(EquivalenceCheck):
    summary = "always says the same"

    def __init__(self, verdict: str, name: str = "says") -> None:
        self.name, self.verdict, self.asked = name, verdict, 0

    def check(self, request):
        self.asked += 1
        return EquivalenceReport(EquivalenceVerdict(self.verdict), "as ever")


class Does(EquivalenceCheck):
    name, summary = "does", "does what it is told"

    def __init__(self, answer) -> None:
        self.answer = answer

    def check(self, request):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_equal_counts_once_both_controls_were_noticed(desk) -> None:
    desk.set_up(OutputFilesCheck(), outputs=("out.txt",))
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert (part.verdict, controls(part)) == ("equal", {"empty": "different", "broken": "different"})
    assert "not written" in part.controls[0].evidence


def test_different_needs_no_control(desk) -> None:
    desk.set_up(OutputFilesCheck(), outputs=("out.txt",))
    (part,) = desk.run(desk.script(RIGHT), desk.script(WRONG))
    assert (part.verdict, part.controls, desk.builder.built) == ("different", (), [])


def test_a_check_that_misses_the_empty_kernel_is_blind(desk) -> None:
    desk.set_up(OutputFilesCheck(), outputs=("out.txt",))
    rest = "echo 2.0 > out.txt"  # the program writes the result itself
    (part,) = desk.run(desk.script("true", rest), desk.script("true 1", rest))
    assert (part.verdict, controls(part)) == ("blind", {"empty": "equal"})
    assert "does not notice a kernel that does nothing" in part.evidence


def test_a_check_that_misses_wrong_values_is_blind(desk) -> None:
    desk.set_up(ValidationCommandCheck(), validate="sh -c '{command} && test -s out.txt'")
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert (part.verdict, controls(part)) == ("blind", {"empty": "different", "broken": "equal"})
    assert "stores wrong values" in part.evidence


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"broken": None}, "no plugin can make the broken version of kernel k"),
        ({"broken": b"syntax error\n"}, "the broken kernel does not build: line 3: syntax error"),
        ({"empty": RIGHT.encode() + b"\n"}, "the edits change nothing"),
        ({"empty": b"sleep 1; exec /no/such/program\n"}, None),
    ],
)
def test_without_both_controls_a_check_is_blind(desk, wrong, reason) -> None:
    desk.set_up(OutputFilesCheck(), controls=desk.controls(**wrong), outputs=("out.txt",))
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert part.verdict == ("blind" if reason else "equal")
    assert (reason or "") in part.evidence


def test_controls_that_only_crash_prove_nothing(desk) -> None:
    crash = b"kill -SEGV $$\n"
    desk.set_up(OutputFilesCheck(), controls=desk.controls(crash, crash), outputs=("out.txt",))
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert (part.verdict, controls(part)) == ("blind", {"empty": "different", "broken": "different"})
    assert "every wrong kernel crashed" in part.evidence
    desk.set_up(OutputFilesCheck(), controls=desk.controls(crash), outputs=("out.txt",))
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert part.verdict == "equal"


def test_controls_are_built_and_shown_once_for_a_baseline(desk) -> None:
    desk.set_up(OutputFilesCheck(), outputs=("out.txt",))
    first = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    second = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT, "# again"))
    assert [part.controls for part in first] == [part.controls for part in second]
    assert len(desk.builder.built) == 2
    desk.run(desk.script(RIGHT, "# another baseline"), desk.script(AS_RIGHT))
    assert len(desk.builder.built) == 4


def test_what_a_control_showed_is_not_asked_again(desk) -> None:
    check = Says("equal")
    desk.set_up(check)
    desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    desk.run(desk.script(RIGHT), desk.script(AS_RIGHT, "# again"))
    assert check.asked == 3  # two candidates, and one control that it missed


def test_two_checks_share_the_builds_of_controls(desk) -> None:
    validate = "sh -c '{command} && grep -q 2.0 out.txt'"
    desk.set_up(OutputFilesCheck(), ValidationCommandCheck(), outputs=("out.txt",), validate=validate)
    parts = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert verdicts(parts) == {"output-files": "equal", "validation-command": "equal"}
    assert len(desk.builder.built) == 2


def test_all_checks_see_the_candidate_before_a_control_is_built(desk) -> None:
    last = Says("not_run", "last")
    desk.set_up(OutputFilesCheck(), Says("different"), last, outputs=("out.txt",))
    parts = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert verdicts(parts) == {"output-files": "equal", "says": "different", "last": "not_run"}
    assert "not needed: says" in parts[2].evidence
    assert (last.asked, desk.builder.built) == (0, [])


def test_nothing_configured_runs_nothing(desk) -> None:
    desk.set_up(OutputFilesCheck(), ValidationCommandCheck())
    parts = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert set(verdicts(parts).values()) == {"not_run"}
    assert desk.builder.built == []


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        (ValueError("boom"), "boom"),
        (SystemExit(0), "sys.exit"),
        (MissingError("no disk"), "no disk"),
        ("equal", "EquivalenceReport"),
        (EquivalenceReport("equal", "trust me"), "EquivalenceReport"),
        (EquivalenceReport(EquivalenceVerdict.EQUAL, None), "EquivalenceReport"),
    ],
)
def test_a_check_that_fails_is_not_run(desk, answer, evidence: str) -> None:
    desk.set_up(Does(answer))
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert part.verdict == "not_run"
    assert evidence in part.evidence


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InterruptedRunError("interrupted by SIGINT")])
def test_an_interrupt_ends_the_stage(desk, error: BaseException) -> None:
    desk.set_up(Does(error))
    with pytest.raises(type(error)):
        desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))


def test_a_plugin_that_fails_to_make_controls_leaves_the_check_blind(desk) -> None:
    class Fails(desk.controls):
        def controls(self, source):
            raise RuntimeError("no idea")

    desk.set_up(OutputFilesCheck(), controls=Fails(), outputs=("out.txt",))
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert part.verdict == "blind"
    assert "no idea" in part.evidence


def test_an_always_equal_check_is_blind(desk) -> None:
    desk.set_up(Says("equal"))
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert part.verdict == "blind"


def test_a_control_that_hangs_does_not_cost_the_whole_time_limit(desk, monkeypatch) -> None:
    monkeypatch.setattr("rpl_optimize.equivalence.stage.CONTROL_TIME_S", 0.5)
    monkeypatch.setattr("rpl_optimize.equivalence.stage.CONTROL_TIME_FACTOR", 0.0)
    hangs = desk.controls(broken=b"sleep 100\n")
    desk.set_up(OutputFilesCheck(), controls=hangs, outputs=("out.txt",), time_limit_s=90.0)
    (part,) = desk.run(desk.script(RIGHT), desk.script(AS_RIGHT))
    assert part.verdict == "equal"
    assert "did not end within 0.5 s" in part.controls[1].evidence


def test_both_checks_are_offered(rpl_host) -> None:
    names = rpl_host("optimize").catalog.of(EQUIVALENCE_CHECKS).names
    assert names == ("validation-command", "output-files")


class Times(Says):
    """Runs the kernel alone too."""

    def __init__(self, answer) -> None:
        super().__init__("equal", "times")
        self.answer = answer

    def time_kernel(self, request, candidate_first):
        assert request.candidate_directory.is_dir()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (KernelPairs(((2.0, 1.0),)), None),
        (None, "it gave no pairs"),
        (MissingError("no GPU"), "no GPU"),
        (ZeroDivisionError("x"), "equivalence check times"),
    ],
)
def test_a_check_that_runs_the_kernel_alone_is_asked_for_its_times(desk, answer, problem) -> None:
    desk.set_up(Says("equal"), Times(answer))
    equal = [CheckPart(check=name, verdict="equal", evidence="") for name in ("says", "times")]
    assert desk.stage.timing(equal) == "times"
    assert desk.stage.timing([one.model_copy(update={"verdict": "blind"}) for one in equal]) is None
    subject = desk.subject(desk.script(RIGHT), desk.script(AS_RIGHT))
    found = desk.stage.time_kernel("times", subject, desk.tmp / "alone", (True,))
    assert found.problem is None if problem is None else problem in found.problem
