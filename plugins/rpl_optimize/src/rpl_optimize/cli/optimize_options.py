"""The options that every command of the closed loop shares."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from rpl_core.cli.command_options import option
from rpl_core.values import frozen


class FiniteRange(click.FloatRange):
    """A number of a range, which neither NaN nor an infinity is."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # as click types it
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


_SECONDS = FiniteRange(min=0, min_open=True)
_TOLERANCE = FiniteRange(min=0)
_FRACTION = FiniteRange(min=0, max=1, min_open=True, max_open=True)
#: More candidates share the error so thinly that no 30 pairs could prove a gain (chosen well below that).
_CANDIDATES = click.IntRange(1, 1000)


@frozen
class OptimizeSettings:
    """What the commands of the closed loop are told, settings resolved; ``None``: neither said nor set."""

    # what is changed
    source: Path | None = option(
        "--source",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Source of the kernels.",
    )
    kernel: str | None = option(
        "--kernel",
        metavar="NAME",
        help="Only this kernel, by its name in the source.",
    )
    # how it is built
    build_command: str | None = option(
        "--build",
        metavar="COMMAND",
        help="How the program is built: with {source} and {output}, or the project's own build command "
        "(default: what CMake, ninja, make or setup.py left there).",
    )
    compile_database: Path | None = option(
        "--compile-database",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="compile_commands.json to build by (default: the nearest one).",
    )
    link_flags: str | None = option(
        "--link-flags",
        metavar="FLAGS",
        help="For linking what the compile database compiles.",
    )
    project: Path | None = option(
        "--project",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Tree that the project's own build command needs; a copy of it is built.",
    )
    binary: Path | None = option(
        "--binary",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What is built and holds the kernels, where that is not the first word: a program that a script "
        "starts, a library, a file of device code (default: one recorded run tells).",
    )
    build_time_limit: float = option(
        "--build-time-limit",
        type=_SECONDS,
        metavar="S",
        default=600.0,
        help="Seconds for one build.",
    )
    # whether it computes the same
    validate: tuple[str, ...] = option(
        "--validate",
        multiple=True,
        metavar="COMMAND",
        help="Exits 0 when results are right; {program} is the built program, {command} the whole command. "
        "Repeatable, for example with other sizes.",
    )
    outputs: tuple[str, ...] = option(
        "--output-file",
        multiple=True,
        metavar="FILE",
        help="Results to compare with the baseline's; `-` is stdout; FILE:f32 for raw numbers. Repeatable.",
    )
    rtol: float = option(
        "--rtol",
        type=_TOLERANCE,
        metavar="FRACTION",
        default=0.0,
        help="Permitted relative difference of numbers.",
    )
    atol: float = option(
        "--atol",
        type=_TOLERANCE,
        metavar="NUMBER",
        default=0.0,
        help="Permitted absolute difference of numbers.",
    )
    allow_unverified: bool = option(
        "--allow-unverified",
        is_flag=True,
        help="Accept on time alone; the verdict says so.",
    )
    # when it ends, what is accepted
    min_improvement: float = option(
        "--min-improvement",
        type=_FRACTION,
        metavar="FRACTION",
        default=0.02,
        show_default=True,
        help="Least gain of the whole application, as a fraction.",
    )
    max_iters: int = option(
        "--max-iters",
        type=_CANDIDATES,
        metavar="N",
        default=3,
        show_default=True,
        help="Candidates to try at most.",
    )
    time_budget: float | None = option(
        "--time-budget",
        type=_SECONDS,
        metavar="S",
        help="Seconds after which no candidate is started.",
    )
    patience: int = option(
        "--patience",
        type=click.IntRange(1),
        metavar="N",
        default=3,
        show_default=True,
        help="Candidates in a row that may fail, of each transformation.",
    )
    auto_approve: bool = option(
        "--auto-approve",
        is_flag=True,
        help="Accept what is proven without asking.",
    )
    step_by_step: bool = option(
        "--step-by-step",
        is_flag=True,
        help="For other programs: before each stage a JSON line on stdout, then wait for `go` on stdin.",
    )
    in_place: bool = option(
        "--in-place",
        is_flag=True,
        help="Replace the source; a backup is kept beside it.",
    )
    resume: Path | None = option(
        "--resume",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Go on with a session.",
    )
    keep_command: bool = option(
        "--keep-command",
        is_flag=True,
        help="Keep secrets of the command in the session (masked otherwise).",
    )
    sign: Path | None = option(
        "--sign",
        type=click.Path(path_type=Path),
        metavar="KEY",
        help="Sign the ledger at its end with this file of 32 bytes or more (`rpl ledger verify --key`).",
    )
    allow_occupancy_loss: bool = option(
        "--allow-occupancy-loss",
        is_flag=True,
        help="With --metric: permit fewer waves per SIMD, which a measurement weighs.",
    )
    traffic_gate: bool = option(
        "--traffic-gate/--no-traffic-gate",
        default=True,
        help="Whether memory traffic is counted before accepting (needs hardware counters).",
    )
    placement_check: bool | None = option(
        "--placement-check/--no-placement-check",
        default=None,
        help="Measure builds with shifted code as well (default: for gains under 5 %).",
    )
    force: bool = option(
        "--force",
        is_flag=True,
        help="Judge even if the baseline's CV is above 10 %.",
    )
    # how it is recorded and measured
    device: str | None = option(
        "--device",
        setting="device",
        metavar="NAME",
        help="Device family or product, see `rpl devices`.",
    )
    metric: str | None = option(
        "--metric",
        metavar="NAME",
        help="Compare candidates by a model, on a device that measures nothing; none is accepted.",
    )
    runs: int = option(
        "--runs",
        setting="runs",
        type=int,
        metavar="N",
        help="Timing runs of the baseline's profile (default 3).",
    )
    roofline: bool = option(
        "--roofline",
        setting="roofline",
        is_flag=True,
        default=None,
        help="Collect counters for the proposals as well.",
    )
    focus_critical: bool = option(
        "--focus-critical",
        setting="focus-critical",
        is_flag=True,
        default=None,
        help="Trace copies and the HIP API for the path too.",
    )
    collector: str | None = option(
        "--collector",
        setting="collector",
        metavar="NAME",
        help="Collector to record with.",
    )
    time_limit: float | None = option(
        "--time-limit",
        setting="time-limit",
        type=float,
        metavar="S",
        help="Seconds that one run may take (measuring: 10 times the baseline's).",
    )
    debug: bool = option(
        "--debug",
        is_flag=True,
        help="Show the profiler's log.",
    )
    as_json: bool = option(
        "--json",
        is_flag=True,
        help="Print optimize.json on stdout.",
    )
    output: Path | None = option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="Session directory (default: rpl-runs/...).",
    )
