"""The options of recording commands: without the profiler, and how and of what counters are collected."""

from __future__ import annotations

import re
from typing import Any

from rpl_core.config import flag, one_of
from rpl_core.errors import UsageError
from rpl_core.interfaces.options import CommandOption, OptionForm

__all__ = ["COLLECT_KERNEL", "COLLECT_LAUNCHES", "OPTIONS", "REPLAY", "ROCPROF"]

_RANGE = re.compile(r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*")
_LONGEST_RANGE = 1_000_000


def _regex(value: Any) -> str:
    """The profiler's grammar is that of ECMAScript; what even Python can't parse is told before a run."""
    try:
        re.compile(str(value))
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{value!r} is no regular expression: {error}") from None
    if not str(value):
        raise UsageError("an empty regular expression selects every kernel", next_step="leave it out")
    return str(value)


def _launches(value: Any) -> str:
    text = str(value).strip().removeprefix("[").removesuffix("]").replace(" ", "")
    if not _RANGE.fullmatch(text):
        raise UsageError(f"{value!r} is no range of launches", next_step="for example 1, 2-5 or 1,10-12")
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not 1 <= int(first) <= int(last or first) <= _LONGEST_RANGE:
            raise UsageError(f"{part} is no range of launches, which count from 1 to {_LONGEST_RANGE}")
    return text


ROCPROF: CommandOption[bool] = CommandOption(
    name="rocprof",
    commands=("profile", "compare"),
    parse=flag,
    default=True,
    help="--no-rocprof times the whole process only.",
    form=OptionForm.SWITCH,
    group="What is recorded",
)
REPLAY: CommandOption[str] = CommandOption(
    name="replay",
    commands=("profile",),
    parse=one_of("off", "kernel", "rotate", "auto"),
    default="off",
    help="Collect all counter groups in one run: kernel (replay, beta of AMD), rotate or auto; default off.",
    metavar="MODE",
)
COLLECT_KERNEL: CommandOption[str | None] = CommandOption(
    name="collect-kernel",
    commands=("profile",),
    parse=_regex,
    default=None,
    help="Count only kernels whose name matches.",
    metavar="REGEX",
)
COLLECT_LAUNCHES: CommandOption[str | None] = CommandOption(
    name="collect-launches",
    commands=("profile",),
    parse=_launches,
    default=None,
    help="Count only these launches of each kernel, such as 1,10-12.",
    metavar="RANGE",
)
OPTIONS: tuple[CommandOption[Any], ...] = (ROCPROF, REPLAY, COLLECT_KERNEL, COLLECT_LAUNCHES)
