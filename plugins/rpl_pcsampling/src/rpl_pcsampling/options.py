"""Options of ``rpl profile`` that ask for PC samples."""

from __future__ import annotations

from typing import Any

from rpl_core.config import one_of, positive, positive_int
from rpl_core.interfaces.options import CommandOption, SettingKind

__all__ = ["OPTIONS", "PC_INTERVAL", "PC_SAMPLING", "PC_TIMEOUT"]

_COMMANDS = ("profile",)

PC_SAMPLING: CommandOption[str | None] = CommandOption(
    name="pc-sampling",
    commands=_COMMANDS,
    parse=one_of("stochastic", "host-trap"),
    default=None,
    help="Sample program counters in a run of its own: stochastic or host-trap (beta of AMD).",
    metavar="METHOD",
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
    meaning="method of PC sampling",
)
PC_INTERVAL: CommandOption[int | None] = CommandOption(
    name="pc-interval",
    commands=_COMMANDS,
    parse=positive_int,
    default=None,
    help="Cycles between stochastic samples (a power of two, default 1048576), or us (host-trap, 100).",
    metavar="N",
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
    meaning="cycles or microseconds between PC samples",
)
PC_TIMEOUT: CommandOption[float | None] = CommandOption(
    name="pc-timeout",
    commands=_COMMANDS,
    parse=positive,
    default=None,
    help="Seconds that the run with PC sampling may take.",
    metavar="S",
    setting=True,
    kind=SettingKind.VALUE,
    meaning="seconds that the run with PC sampling may take",
)
OPTIONS: tuple[CommandOption[Any], ...] = (PC_SAMPLING, PC_INTERVAL, PC_TIMEOUT)
