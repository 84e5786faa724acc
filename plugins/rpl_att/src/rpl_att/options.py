"""Options of ``rpl profile`` that ask for thread traces."""

from __future__ import annotations

from rpl_core.config.values import flag, positive, positive_int
from rpl_core.interfaces.options import CommandOption, OptionForm, SettingKind

__all__ = ["DEEP_ANALYSIS", "DEEP_TIMEOUT", "DEEP_TOP", "OPTIONS"]

_COMMANDS = ("profile",)

DEEP_ANALYSIS: CommandOption[bool] = CommandOption(
    name="deep-analysis",
    commands=_COMMANDS,
    group="Thread traces",
    parse=flag,
    default=False,
    help="Trace the instructions of the most critical kernels in passes of their own.",
    form=OptionForm.FLAG,
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
    meaning="trace the instructions of the most critical kernels",
)
DEEP_TOP: CommandOption[int] = CommandOption(
    name="deep-top",
    commands=_COMMANDS,
    group="Thread traces",
    parse=positive_int,
    default=3,
    help="Kernels that --deep-analysis traces (default 3).",
    metavar="N",
    setting=True,
    kind=SettingKind.VALUE,
    meaning="kernels that a deep analysis traces",
)
DEEP_TIMEOUT: CommandOption[float | None] = CommandOption(
    name="deep-timeout",
    commands=_COMMANDS,
    group="Thread traces",
    parse=positive,
    default=None,
    help="Seconds that one thread trace may take.",
    metavar="S",
    setting=True,
    kind=SettingKind.VALUE,
    meaning="seconds that one thread trace may take",
)
OPTIONS = (DEEP_ANALYSIS, DEEP_TOP, DEEP_TIMEOUT)
