"""Every failure that rpl expects, as one tree, and the exit codes of every command.

::

    RplError                 internal error that still deserves one line (70)
     +-- UsageError          the command line or configuration is wrong (64)
     +-- BadDataError        an input is broken, foreign or contradicts the request (65)
     |    +-- ForeignFileError   recognised, but another tool's format (65)
     |    +-- DeviceMismatchError   recorded on another device than asked for (65)
     +-- MissingError        a tool, device, plugin or recording is absent (69)
     +-- NoVerdictError      the evidence does not decide (75)
     +-- ApplicationError    the profiled application failed (76)
     +-- TimeLimitError      a time limit ended the work (124)
     +-- MemoryLimitError    a limit on memory ended the work (124)
     +-- InterruptedRunError Ctrl-C or SIGTERM (130)
     +-- PluginError         a plugin broke its contract (70)

A message is the fact. ``cause`` is the likely reason and ``next_step`` what to do; both are printed
behind the fact on the same line.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """Numbers follow sysexits.h where one fits, so that shells and CI systems can tell causes apart."""

    OK = 0
    NEGATIVE_FINDING = 1  # regression found, candidate rejected, reservation failed
    RELOCATED = 2  # `replay reserve-check` only
    USAGE = 64
    BAD_DATA = 65  # the input is broken, foreign, or of another device than asked for
    MISSING = 69  # a tool, device, plugin or recording that the command needs is absent
    INTERNAL = 70
    NO_VERDICT = 75
    APPLICATION_FAILED = 76
    TIME_LIMIT = 124
    INTERRUPTED = 130


_LONGEST_LINE = 2000 + len(" ... ")  # names out of files have any length


class RplError(Exception):
    """Root of all expected failures."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, fact: str, *, cause: str | None = None, next_step: str | None = None) -> None:
        super().__init__(fact)
        self.fact = fact
        self.cause = cause
        self.next_step = next_step

    def one_line(self) -> str:
        """Fact, cause and next step as one line without control characters."""
        reasons = self.cause and f"Likely cause: {self.cause}", self.next_step and f"Next: {self.next_step}"
        parts = filter(None, (self.fact, *reasons))
        text = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line if len(line) <= _LONGEST_LINE else f"{line[:1500]} ... {line[-500:]}"


class UsageError(RplError):
    """The command line or the configuration can't be understood."""

    exit_code = ExitCode.USAGE


class BadDataError(RplError):
    """An input exists but is truncated, malformed or contradicts the request."""

    exit_code = ExitCode.BAD_DATA


class ForeignFileError(BadDataError):
    """An input was recognised as the format of another tool or an unsupported version."""


class DeviceMismatchError(BadDataError):
    """The recording was made on another device than the user asked for."""


class MissingError(RplError):
    """A tool, device, plugin, file or recording that the command needs is absent."""

    exit_code = ExitCode.MISSING


class NoVerdictError(RplError):
    """The evidence at hand does not decide the question."""

    exit_code = ExitCode.NO_VERDICT


class ApplicationError(RplError):
    """The profiled application failed by itself."""

    exit_code = ExitCode.APPLICATION_FAILED


class TimeLimitError(RplError):
    """A time limit given by the user ended the work."""

    exit_code = ExitCode.TIME_LIMIT


class MemoryLimitError(RplError):
    """A command and what it started held more memory together than they may."""

    exit_code = ExitCode.TIME_LIMIT


class InterruptedRunError(RplError):
    """The user or the system interrupted the work."""

    exit_code = ExitCode.INTERRUPTED


class PluginError(RplError):
    """A plugin raised, exited or returned something its hook does not allow."""

    def __init__(self, plugin: str, hook: str, problem: str) -> None:
        super().__init__(
            f"plugin {plugin!r} failed in {hook}: {problem}",
            next_step=f"run `rpl plugins info {plugin}`, or disable it with `--disable-plugin {plugin}`",
        )
        self.plugin = plugin
        self.hook = hook
        self.problem = problem
