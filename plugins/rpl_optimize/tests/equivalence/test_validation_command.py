"""``validation-command``: the user's own command decides, once for the baseline and for every candidate."""

from __future__ import annotations

import shlex

import pytest
from attrs import evolve

from rpl_optimize.equivalence.checks import ValidationCommandCheck
from rpl_optimize.interfaces.equivalence import EquivalenceVerdict
from rpl_optimize.running.sandbox import find_sandbox
from rpl_testkit import contracts
from rpl_testkit.requirements import absent

EQUAL, DIFFERENT, NOT_RUN = (
    EquivalenceVerdict.EQUAL,
    EquivalenceVerdict.DIFFERENT,
    EquivalenceVerdict.NOT_RUN,
)
#: Passes when the program prints 2; the program's arguments show what it was given.
VALIDATE = 'sh -c \'echo checked; test "$({command})" = "2 8"\''


def check(desk, candidate: str, validate: str = VALIDATE, baseline: str = 'echo "2 $1"', **options):
    request = desk.request(desk.script(baseline), desk.script(candidate), validate=validate, **options)
    return ValidationCommandCheck().check(request)


def test_the_contract_of_checks_is_kept(tmp_path) -> None:
    contracts.assert_equivalence_check(ValidationCommandCheck(), tmp_path)


def test_exit_status_0_is_equal_and_another_is_different(desk) -> None:
    right = check(desk, 'echo "$((1 + 1)) $1"')
    assert (right.verdict, right.evidence) == (EQUAL, "the validation passed: checked")
    wrong = check(desk, 'echo "3 $1"')
    assert (wrong.verdict, wrong.crashed) == (DIFFERENT, False)
    assert wrong.evidence == "the validation exited with status 1: checked"


def test_a_command_as_a_word_of_its_own_becomes_several(desk) -> None:
    assert check(desk, 'test "$1" = 8', validate="{command}", baseline=":").verdict is EQUAL
    assert check(desk, 'test "$1" = 9', validate="{command}", baseline=":").verdict is DIFFERENT


def test_program_and_directory_are_filled_in(desk) -> None:
    (desk.home / "expected").write_text("2\n")
    (desk.home / "check.sh").write_text('#!/bin/sh\ncd "$2" && "$1" > got && cmp got expected\n')
    (desk.home / "check.sh").chmod(0o755)
    validate = "./check.sh {program} {directory}"
    assert check(desk, "echo 2 #", validate, "echo 2").verdict is EQUAL
    assert check(desk, "echo 3", validate, "echo 2").verdict is DIFFERENT
    assert not (desk.home / "got").exists()


def test_there_is_no_shell(desk) -> None:
    validate = f"{{program}} ; touch {shlex.quote(str(desk.tmp / 'escaped'))}"
    assert check(desk, "echo 2 #", validate, "echo 2").verdict is EQUAL
    assert not (desk.tmp / "escaped").exists()


def test_a_placeholder_in_a_path_is_not_filled_again(desk) -> None:
    home = desk.tmp / "{directory}"
    home.mkdir()
    request = desk.request(desk.script("echo 1"), desk.script("echo 1 #"), validate="test -x {program}")
    odd = home / "app"
    odd.write_bytes(desk.script("echo 1"))
    odd.chmod(0o755)
    assert ValidationCommandCheck().check(evolve(request, candidate_program=odd)).verdict is EQUAL


@pytest.mark.parametrize(
    ("validate", "reason"),
    [
        (None, "no validation command"),
        ("true", "names neither {program} nor {command}"),
        ("false {program}", "it fails for the unchanged program too: "),
        ("no-such-program-here {program}", "cannot start no-such-program-here"),
        ("'{program}", "can't be split into words"),
        ("sh -c 'sleep 60' {program}", "did not end within 1 s"),
    ],
)
def test_what_can_not_decide_is_not_run(desk, validate, reason: str) -> None:
    report = check(desk, "echo 2 #", validate, time_limit_s=1.0)
    assert report.verdict is NOT_RUN, report
    assert reason in report.evidence


@pytest.mark.parametrize("end", ["kill -SEGV $$", "sleep 60", "exec sh -c 'kill -ABRT $$'"])
def test_a_crash_or_a_hang_is_different_and_said_to_be_one(desk, end: str) -> None:
    report = check(desk, end, "{command}", "exit 0", time_limit_s=2.0)
    assert (report.verdict, report.crashed) == (DIFFERENT, True)


def test_a_program_that_returns_minus_1_has_not_crashed(desk) -> None:
    report = check(desk, "exit 255", "{command}", "exit 0")
    assert (report.verdict, report.crashed) == (DIFFERENT, False)


def test_a_validation_that_rewrites_a_large_file_of_the_user_is_not_run(desk) -> None:
    (desk.home / "big.bin").write_bytes(bytes(2 << 20))
    report = check(desk, ":", "sh -c 'echo x >> big.bin; {command}'", "exit 0")
    assert report.verdict is NOT_RUN
    assert "big.bin" in report.evidence


def test_the_baseline_is_validated_once(desk) -> None:
    request = desk.request(
        desk.script(f"echo run >> {desk.tmp}/runs"), desk.script(":"), validate="{command}"
    )
    checker = ValidationCommandCheck()
    assert checker.check(request).verdict is EQUAL
    assert checker.check(request).verdict is EQUAL
    assert (desk.tmp / "runs").read_text() == "run\n"


def test_declared_outputs_of_earlier_runs_are_not_there(desk) -> None:
    (desk.home / "out.txt").write_text("2\n")
    validate = "sh -c '{command} && grep -q 2 out.txt'"
    report = check(desk, ":", validate, "echo 2 > out.txt", outputs=("out.txt",))
    assert report.verdict is DIFFERENT


def test_programs_write_nowhere_else_and_it_is_said_how_they_may(desk, monkeypatch) -> None:
    if find_sandbox().kind is None:
        absent("sandbox", find_sandbox().reason)
    elsewhere = desk.tmp / "elsewhere"
    elsewhere.write_text("the user's")
    validate = f"sh -c '{{command}} && cat out.txt > {elsewhere}'"
    monkeypatch.delenv("RPL_SANDBOX")
    report = check(desk, "echo 2 > out.txt # other", validate, "echo 2 > out.txt", outputs=("out.txt",))
    assert report.verdict is NOT_RUN
    assert "RPL_SANDBOX=builds runs it without" in report.evidence
    assert elsewhere.read_text() == "the user's"


def test_every_command_counts_and_the_one_that_failed_is_named(desk) -> None:
    """A result may be wrong at one size only."""
    sizes = tuple(f'sh -c \'test "$({{program}} {size})" = "2 {size}"\'' for size in (7, 64))
    assert check(desk, 'echo "2 $1" #', sizes).verdict is EQUAL
    report = check(desk, 'test "$1" = 7 && echo "2 $1"', sizes)
    assert report.verdict is DIFFERENT
    assert '"2 64"' in report.evidence
