"""Options of ``rpl optimize`` for the check by a captured launch; other commands read these alone."""

from __future__ import annotations

from pathlib import Path

from rpl_core.config.values import flag, text
from rpl_core.interfaces.options import CommandOption, OptionForm

CAPTURE: CommandOption[Path | None] = CommandOption(
    name="capture",
    commands=("optimize",),
    parse=lambda value: Path(text(value)),
    default=None,
    help="Capture of one launch (`rpl isolate`): candidates have to compute what it computed.",
    metavar="DIR",
)
SANITIZE: CommandOption[bool] = CommandOption(
    name="sanitize",
    commands=("optimize",),
    parse=flag,
    default=False,
    help="Check candidates for races and reads of what nobody wrote, on the emulated device.",
    form=OptionForm.FLAG,
)
