"""Options of searches, each declared once: those of ``rpl autotune`` and those of ``rpl optimize --tune``."""

from __future__ import annotations

import click

from rpl_core.cli.command_options import option
from rpl_core.config import at_most, flag, text
from rpl_core.interfaces.options import CommandOption, OptionForm
from rpl_core.values import frozen

SECONDS = click.FloatRange(min=0, min_open=True)


@frozen
class SearchOptions:
    """How ``rpl autotune`` searches; without ``most_evaluations`` the size of the space decides."""

    most_evaluations: int | None = option(
        "--budget",
        type=click.IntRange(2),
        metavar="N",
        help="Evaluations at most (default 100, or half the space).",
    )
    time_budget_s: float | None = option(
        "--time-budget", type=SECONDS, metavar="S", help="Seconds after which nothing is started."
    )
    exhaustive: bool = option("--exhaustive", is_flag=True, help="Measure the whole space.")
    strategy: str = option(
        "--strategy", metavar="NAME", default="regression", show_default=True, help="How to choose."
    )
    seed: int = option(
        "--seed", type=int, metavar="N", default=0, show_default=True, help="Equal seeds search alike."
    )
    seed_fraction: float = option(
        "--seed-fraction",
        type=click.FloatRange(0, 0.25, min_open=True),
        metavar="F",
        default=0.2,
        show_default=True,
        help="Part of the budget to learn from at most.",
    )
    prune_factor: float = option(
        "--prune-factor",
        type=click.FloatRange(1),
        metavar="F",
        default=1.75,
        show_default=True,
        help="Measure predictions up to so many times the best one.",
    )
    confirm_rounds: int = option(
        "--confirm-rounds",
        type=click.IntRange(0),
        metavar="N",
        default=10,
        show_default=True,
        help="Rounds of the final measurement.",
    )


# Options of ``rpl optimize`` for the search over constants of the source.

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
