"""The options of the analysis; each object is also the key to its value."""

from __future__ import annotations

from rpl_core.config.values import flag, one_of
from rpl_core.interfaces.options import CommandOption, OptionForm

__all__ = ["ANALYSIS_OPTIONS", "COPIES", "FLOP_MODEL", "FULL_GRAPH", "OCCUPANCY_MODE", "STRICT"]

_ANALYSING = ("profile", "analyze")

FLOP_MODEL: CommandOption[str] = CommandOption(
    name="flop-model",
    commands=_ANALYSING,
    parse=one_of("per_op", "valu_width"),
    default="per_op",
    help="per_op (default) or valu_width, see ROOFLINE_DESIGN.",
    meaning="how FLOPs are counted",
    metavar="MODEL",
    setting=True,
    recorded=True,
)
OCCUPANCY_MODE: CommandOption[str] = CommandOption(
    name="occupancy-mode",
    commands=_ANALYSING,
    parse=one_of("hardware", "llvm"),
    default="hardware",
    help="hardware (default) or llvm: LDS granule.",
    meaning="LDS granule of the occupancy model",
    metavar="MODE",
    setting=True,
    recorded=True,
)
STRICT: CommandOption[bool] = CommandOption(
    name="strict",
    commands=_ANALYSING,
    parse=flag,
    default=False,
    help="No estimates where a measurement is missing.",
    meaning="no estimates where a measurement is missing",
    form=OptionForm.FLAG,
    setting=True,
    recorded=True,
)
COPIES: CommandOption[bool] = CommandOption(
    name="copies",
    commands=(*_ANALYSING, "what-if"),
    parse=flag,
    default=True,
    help="Whether copies are work of the critical path (default) or time between kernels.",
    meaning="copies are work of the critical path",
    form=OptionForm.SWITCH,
    setting=True,
    recorded=True,
)
FULL_GRAPH: CommandOption[bool] = CommandOption(
    name="full",
    commands=_ANALYSING,
    parse=flag,
    default=False,
    help="Write every node and edge of the graph to dag_full.npz too.",
    form=OptionForm.FLAG,
)

ANALYSIS_OPTIONS: tuple[CommandOption[bool] | CommandOption[str], ...] = (
    FLOP_MODEL,
    OCCUPANCY_MODE,
    STRICT,
    COPIES,
    FULL_GRAPH,
)
