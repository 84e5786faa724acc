"""Options of ``rpl optimize`` for the check by a captured launch; other commands read these alone."""

from __future__ import annotations

from pathlib import Path

from rpl_core.config import at_most, flag, positive, text
from rpl_core.interfaces.options import CommandOption, OptionForm

CAPTURE: CommandOption[Path | None] = CommandOption(
    name="capture",
    commands=("optimize",),
    parse=lambda value: Path(text(value)),
    default=None,
    help="Capture of one launch (`rpl isolate`): candidates have to compute what it computed.",
    metavar="DIR",
)
SANITIZE: CommandOption[bool | None] = CommandOption(
    name="sanitize",
    commands=("optimize",),
    parse=flag,
    default=None,
    help=(
        "Check candidates for races and reads of what nobody wrote, on the emulated device; without a word, "
        "on varied inputs of a captured kernel with LDS, barriers or atomics."
    ),
    form=OptionForm.SWITCH,
)
VARY_INPUTS: CommandOption[int] = CommandOption(
    name="vary-inputs",
    commands=("optimize",),
    parse=lambda value: 0 if str(value) == "0" else at_most(100_000)(value),
    default=200,
    help="Variations of the captured launch on which candidates have to compute the same (200); 0: none.",
    metavar="N",
)
VARY_SECONDS: CommandOption[float] = CommandOption(
    name="vary-seconds",
    commands=("optimize",),
    parse=positive,
    default=120.0,
    help="Seconds for them, per candidate (120); what is left over is not compared.",
    metavar="SECONDS",
)
