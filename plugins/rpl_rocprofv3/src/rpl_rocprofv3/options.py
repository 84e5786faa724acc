"""The option of recording commands that turns the profiler off."""

from __future__ import annotations

from rpl_core.config.values import flag
from rpl_core.interfaces.options import CommandOption, OptionForm

__all__ = ["ROCPROF"]

ROCPROF: CommandOption[bool] = CommandOption(
    name="rocprof",
    commands=("profile", "compare"),
    parse=flag,
    default=True,
    help="--no-rocprof times the whole process only.",
    form=OptionForm.SWITCH,
    group="What is recorded",
)
