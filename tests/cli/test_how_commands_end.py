"""What every kind of ending gives: the exit code of the manual, one line on stderr, nothing on stdout.

Endings are raised in place of the command line, so that each is met whoever raises it.
"""

from __future__ import annotations

import errno
import io
import itertools
import os
import re
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import click
import pytest

from rpl_core import errors
from rpl_core.cli import output
from rpl_core.cli.output import Output, broken_for, describe, emphasised
from rpl_core.contracts.common import DiagnosticDoc
from rpl_core.text import wrap_lines

#: docs/USER_GUIDE.md, "Exit codes".
CODES = {
    errors.UsageError: 64,
    errors.BadDataError: 65,
    errors.DeviceMismatchError: 65,
    errors.MissingError: 69,
    errors.NoVerdictError: 75,
    errors.ApplicationError: 76,
    errors.TimeLimitError: 124,
    errors.MemoryLimitError: 124,
    errors.InterruptedRunError: 130,
    errors.RplError: 70,
}
#: The place that was named is wrong (64); all else of the system is missing (69).
WRONG_PLACE = {"EACCES", "EPERM", "EROFS", "ENOTDIR", "EISDIR", "EEXIST"}
REMEDIES = {
    "ENOSPC": "free some disk space",
    "EDQUOT": "free some of your quota",
    "EFBIG": "raise the limit for file sizes",
    "EACCES": "check the permissions",
    "EROFS": "choose a writable place",
}


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """``ending(what)``: exit code and stderr of a command that raises it, or returns it."""

    def end(what: Any) -> tuple[int, str]:
        def command(**_: Any) -> Any:
            if isinstance(what, BaseException):
                raise what
            return what

        main = import_module("rpl_core.cli.main")
        monkeypatch.setattr(main, "rpl", SimpleNamespace(main=command))
        code = main.run([])
        told = capsys.readouterr()
        assert told.out == ""
        return code, told.err

    return end


@pytest.mark.parametrize(("kind", "code"), CODES.items())
def test_errors_of_rpl_have_their_code_and_one_line(ending, kind: Any, code: int) -> None:
    error = kind("the fact\nof it", cause="a cause", next_step="do this!")
    assert ending(error) == (code, "rpl: the fact of it. Likely cause: a cause. Next: do this!\n")
    assert ending(kind("why?"))[1] == "rpl: why?\n"
    assert ending(kind("x", next_step="y"))[1] == "rpl: x. Next: y.\n"


def test_a_line_beyond_all_measure_keeps_its_ends(ending) -> None:
    for length in (1000, 3000, 100_000):
        fact = "".join(f"{number % 10}" for number in range(length))
        _, line = ending(errors.UsageError(fact))
        whole = f"rpl: {fact}.\n"
        if line != whole:
            begin, end = line.removeprefix("rpl: ").removesuffix("\n").split(" ... ")
            assert (begin, end) == (fact[:1500], f"{fact}."[-500:])
            assert length > 1000
    assert " ... " in line


def test_every_failure_of_the_system_is_a_wrong_place_or_something_missing(ending) -> None:
    for number, name in errno.errorcode.items():
        error = OSError(number, os.strerror(number), "/some/place")
        code, line = ending(error)
        assert code == (64 if name in WRONG_PLACE else 69), name
        remedy = REMEDIES.get(name, "check the path")
        assert line.startswith(f"rpl: {os.strerror(number)} at /some/place. Next: {remedy}"), name
        assert line.endswith(".\n")
        if number == errno.EPIPE:
            continue
        code, line = ending(OSError(number, os.strerror(number)))
        if name == "ENOSPC":  # nobody but stdout has no name
            assert (code, line) == (
                69,
                "rpl: the disk is full. Next: free some space, or send the output elsewhere.\n",
            )
        else:
            assert line.startswith(f"rpl: {os.strerror(number)}. Next: {remedy}"), name
    assert ending(OSError("odd"))[1] == "rpl: odd. Next: check the path.\n"


def test_what_click_raises_is_a_question_of_usage(ending) -> None:
    command = click.Command("profile", params=[click.Argument(["application"], nargs=-1)])
    context = click.Context(command, info_name="rpl profile")
    plain = click.Context(click.Command("report"), info_name="rpl report")
    help_of = " Next: see `rpl report --help`.\n"
    assert ending(click.UsageError("odd words", plain)) == (64, f"rpl: odd words.{help_of}")
    assert ending(click.UsageError("what is it?", plain)) == (64, f"rpl: what is it?{help_of}")
    assert ending(click.UsageError("two\nlines.")) == (64, "rpl: two lines.\n")
    code, line = ending(click.NoSuchOption("--lr", ctx=context))
    assert code == 64
    assert line.endswith("If it belongs to the application, put `--` before the application's command.\n")
    code, line = ending(click.NoSuchOption("--lr", ctx=plain))
    assert (code, line.endswith(help_of)) == (64, True)
    assert ending(click.Abort()) == (130, "rpl: interrupted\n")
    assert ending(KeyboardInterrupt()) == (130, "rpl: interrupted\n")


def test_what_nobody_expects_is_internal_and_what_is_returned_is_the_code(ending) -> None:
    code, line = ending(ZeroDivisionError("no\nway"))
    assert (code, line.splitlines()[-1]) == (
        70,
        (
            "rpl: internal error: ZeroDivisionError: no way. "
            "Next: run again with RPL_TRACEBACK=1 and report the traceback."
        ),
    )
    assert len(line.splitlines()) == 1
    for outcome, expected in (
        (None, 0),
        (0, 0),
        (1, 1),
        (75, 75),
        ("text", 0),
        (errors.ExitCode.MISSING, 69),
    ):
        assert ending(outcome) == (expected, "")
    with pytest.raises(SystemExit):
        ending(SystemExit(3))


def test_a_diagnostic_is_one_line_of_its_parts() -> None:
    for where, cause, remedy, others in itertools.product(
        (None, "run_1"), (None, "a cause"), (None, "do this!"), (0, 3)
    ):
        given = DiagnosticDoc(
            code="a.b", severity="info", fact="a  fact\nin two", cause=cause, remedy=remedy, where=where
        )
        more = " and 3 more" if others else ""
        expected = f"{where}{more}: a fact in two." if where else "a fact in two."
        expected += " Likely cause: a cause." if cause else ""
        expected += " Next: do this!" if remedy else ""
        assert describe(given, others) == expected
    long = DiagnosticDoc(code="a", severity="info", fact="f" * 5000)
    assert 300 < len(describe(long)) <= 402


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(
    ("severity", "shown"), [("info", "info"), ("warning", "warning"), ("error", "warning")]
)
def test_findings_that_only_inform_are_quiet_where_notes_are(
    capsys: pytest.CaptureFixture[str], silent: bool, severity: Any, shown: str
) -> None:
    out = Output()
    out.silent = silent
    out.diagnostic(DiagnosticDoc(code="a", severity=severity, fact="so"))
    out.note("a note\x1b[1m")
    out.warning("careful")
    told = capsys.readouterr()
    said = [] if silent and severity == "info" else [f"{shown}: so."]
    lines = told.err.splitlines()
    assert lines[: len(said)] == said
    assert lines[-1] == "warning: careful"
    assert len(lines) == len(said) + 1 + (not silent)
    assert "\x1b" not in told.err
    assert told.out == ""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("columns", "width"), [(20, 60), (60, 60), (77, 77), (200, 200)])
def test_lines_are_broken_at_the_width_of_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, columns: int, width: int
) -> None:
    monkeypatch.setattr(output.shutil, "get_terminal_size", lambda fallback: os.terminal_size((columns, 9)))
    text = "word " * 100
    assert broken_for(None, text) == broken_for(io.StringIO(), text) == text
    assert broken_for(_Terminal(), text) == wrap_lines(text, width)
    assert max(map(len, broken_for(_Terminal(), text).splitlines())) <= width
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert (output.text_width(), output.terminal_width()) == (100, None)
    monkeypatch.setattr("sys.stdout", _Terminal())
    assert (output.text_width(), output.terminal_width()) == (width, width)
    monkeypatch.setattr("sys.stdout", None)
    assert (output.text_width(), output.terminal_width(), output.shows_colours()) == (100, None, False)


def test_colour_changes_no_letter_and_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {
        "1. gemm: 61 % of the time.": "\x1b[1mgemm:\x1b[0m",
        "   Run: rpl profile -- APP": "\x1b[36mrpl profile -- APP\x1b[0m",
        "   Why: latency bound": "\x1b[1mWhy: \x1b[0m",
        "   Next: unroll it": "\x1b[1mNext: \x1b[0m",
        "   Spent on: waiting": "\x1b[1mSpent on: \x1b[0m",
        "Synthetic: written by a test.": "\x1b[1;31mSynthetic: written by a test.\x1b[0m",
        "Modelled: computed.": "\x1b[1;31mModelled: computed.\x1b[0m",
        "REGRESSION (limit 3 %)": "\x1b[1;31mREGRESSION (limit 3 %)\x1b[0m",
        "PASS (limit 3 %)": "\x1b[1;32mPASS (limit 3 %)\x1b[0m",
        "CANNOT TELL (limit 3 %)": "\x1b[1;33mCANNOT TELL (limit 3 %)\x1b[0m",
        "NO VERDICT": "\x1b[1;33mNO VERDICT\x1b[0m",
        "kernel   time   share": "\x1b[1mkernel   time   share\x1b[0m",
        "NAME  STATUS": "\x1b[1mNAME  STATUS\x1b[0m",
        "Critical path": "\x1b[1mCritical path\x1b[0m",
        "Basis: MI300X; one run.": "\x1b[2mBasis: MI300X; one run.\x1b[0m",
        "(no counters)": "\x1b[2m(no counters)\x1b[0m",
        "(3 more)": "\x1b[2m(3 more)\x1b[0m",
        "a ██▌ b": "\x1b[34m██▌\x1b[0m",
        "a ###... b": "\x1b[34m###...\x1b[0m",
        "a ###.. b": None,
        "PASSED": None,
    }
    text = "\n".join(lines)
    monkeypatch.setattr("sys.stdout", _Terminal())
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    shown = emphasised(text)
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == text
    for plain, styled, line in zip(lines, lines.values(), shown.splitlines(), strict=True):
        assert (styled in line) if styled else (line == plain), line
    for name, value in (("NO_COLOR", ""), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
        assert emphasised(text) == text
        monkeypatch.delenv(name)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert emphasised(text) == text
