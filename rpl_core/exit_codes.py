"""The exit codes of every rpl command, as documented in docs/USER_GUIDE.md."""

from __future__ import annotations

from enum import IntEnum


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
