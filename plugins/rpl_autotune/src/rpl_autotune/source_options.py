"""Options of ``rpl optimize`` for the search over constants of the source."""

from __future__ import annotations

from rpl_core.config.values import at_most, flag, text
from rpl_core.interfaces.options import CommandOption, OptionForm

GROUP = "Search of constants"

TUNE: CommandOption[bool] = CommandOption(
    name="tune",
    commands=("optimize",),
    parse=flag,
    default=False,
    help="Search values of the source's constants too (#define TILE 16, constexpr int BLOCK = 256), and the "
    "launches that follow them.",
    form=OptionForm.FLAG,
    group=GROUP,
)
TUNE_BUDGET: CommandOption[int] = CommandOption(
    name="tune-budget",
    commands=("optimize",),
    parse=at_most(1000),
    default=20,
    help="Configurations that are built and run, per kernel (20).",
    metavar="N",
    group=GROUP,
)
TUNE_RUNS: CommandOption[int] = CommandOption(
    name="tune-runs",
    commands=("optimize",),
    parse=at_most(1000),
    default=3,
    help="Runs of each of them (3).",
    metavar="N",
    group=GROUP,
)
TUNE_FINALISTS: CommandOption[int] = CommandOption(
    name="tune-finalists",
    commands=("optimize",),
    parse=at_most(100),
    default=2,
    help="The best of them that become candidates, measured and judged like all (2).",
    metavar="N",
    group=GROUP,
)
TUNE_STRATEGY: CommandOption[str] = CommandOption(
    name="tune-strategy",
    commands=("optimize",),
    parse=text,
    default="regression",
    help="Strategy of `rpl autotune` that searches (regression).",
    metavar="NAME",
    group=GROUP,
)
