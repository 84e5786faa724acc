"""The options that every command of the closed loop shares, and the settings that they become."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from rpl_core.values import frozen

F = TypeVar("F", bound=Callable[..., Any])


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

_SOURCE = (
    click.option("--source", type=click.Path(path_type=Path), metavar="FILE", help="Source of the kernels."),
    click.option("--kernel", metavar="NAME", help="Only this kernel, by its name in the source."),
)
_BUILD = (
    click.option(
        "--build",
        "build_command",
        metavar="COMMAND",
        help="How the program is built: with {source} and {output}, or the project's own build command "
        "(default: what CMake, ninja, make or setup.py left there).",
    ),
    click.option(
        "--compile-database",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="compile_commands.json to build by (default: the nearest one).",
    ),
    click.option("--link-flags", metavar="FLAGS", help="For linking what the compile database compiles."),
    click.option(
        "--project",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Tree that the project's own build command needs; a copy of it is built.",
    ),
    click.option(
        "--binary",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What is built and holds the kernels, where that is not the first word: a program that a script "
        "starts, a library, a file of device code (default: one recorded run tells).",
    ),
    click.option(
        "--build-time-limit", type=_SECONDS, metavar="S", default=600.0, help="Seconds for one build."
    ),
)
_EQUIVALENCE = (
    click.option(
        "--validate",
        multiple=True,
        metavar="COMMAND",
        help="Exits 0 when results are right; {program} is the built program, {command} the whole command. "
        "Repeatable, for example with other sizes.",
    ),
    click.option(
        "--output-file",
        "outputs",
        multiple=True,
        metavar="FILE",
        help="Results to compare with the baseline's; `-` is stdout; FILE:f32 for raw numbers. Repeatable.",
    ),
    click.option(
        "--rtol",
        type=_TOLERANCE,
        metavar="FRACTION",
        default=0.0,
        help="Permitted relative difference of numbers.",
    ),
    click.option(
        "--atol",
        type=_TOLERANCE,
        metavar="NUMBER",
        default=0.0,
        help="Permitted absolute difference of numbers.",
    ),
    click.option("--allow-unverified", is_flag=True, help="Accept on time alone; the verdict says so."),
)
_LOOP = (
    click.option(
        "--min-improvement",
        type=_FRACTION,
        metavar="FRACTION",
        default=0.02,
        show_default=True,
        help="Least gain of the whole application, as a fraction.",
    ),
    click.option(
        "--max-iters",
        type=_CANDIDATES,
        metavar="N",
        default=3,
        show_default=True,
        help="Candidates to try at most.",
    ),
    click.option(
        "--time-budget", type=_SECONDS, metavar="S", help="Seconds after which no candidate is started."
    ),
    click.option(
        "--patience",
        type=click.IntRange(1),
        metavar="N",
        default=3,
        show_default=True,
        help="Candidates in a row that may fail.",
    ),
    click.option("--auto-approve", is_flag=True, help="Accept what is proven without asking."),
    click.option(
        "--step-by-step",
        is_flag=True,
        help="For other programs: before each stage a JSON line on stdout, then wait for `go` on stdin.",
    ),
    click.option("--in-place", is_flag=True, help="Replace the source; a backup is kept beside it."),
    click.option("--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with a session."),
    click.option(
        "--keep-command", is_flag=True, help="Keep secrets of the command in the session (masked otherwise)."
    ),
    click.option(
        "--sign",
        type=click.Path(path_type=Path),
        metavar="KEY",
        help="Sign the ledger at its end with this file of 32 bytes or more (`rpl ledger verify --key`).",
    ),
    click.option(
        "--allow-occupancy-loss",
        is_flag=True,
        help="With --metric: permit fewer waves per SIMD, which a measurement weighs.",
    ),
    click.option(
        "--traffic-gate/--no-traffic-gate",
        default=True,
        help="Whether memory traffic is counted before accepting (needs hardware counters).",
    ),
    click.option(
        "--placement-check/--no-placement-check",
        default=None,
        help="Measure builds with shifted code as well (default: for gains under 5 %).",
    ),
    click.option("--force", is_flag=True, help="Judge even if the baseline's CV is above 10 %."),
)
_MEASUREMENT = (
    click.option("--device", metavar="NAME", help="Device family or product, see `rpl devices`."),
    click.option(
        "--metric",
        metavar="NAME",
        help="Compare candidates by a model, on a device that measures nothing; none is accepted.",
    ),
    click.option("--runs", type=int, metavar="N", help="Timing runs of the baseline's profile (default 3)."),
    click.option(
        "--roofline", is_flag=True, default=None, help="Collect counters for the proposals as well."
    ),
    click.option(
        "--focus-critical", is_flag=True, default=None, help="Trace copies and the HIP API for the path too."
    ),
    click.option("--collector", metavar="NAME", help="Collector to record with."),
    click.option(
        "--time-limit",
        type=float,
        metavar="S",
        help="Seconds that one run may take (measuring: 10 times the baseline's).",
    ),
    click.option("--debug", is_flag=True, help="Show the profiler's log."),
    click.option("--json", "as_json", is_flag=True, help="Print optimize.json on stdout."),
    click.option(
        "-o", "--output", type=click.Path(path_type=Path), help="Session directory (default: rpl-runs/...)."
    ),
)


def optimize_options(command: F) -> F:
    """Add the shared options to ``command``, grouped as they are explained in the guide."""
    for option in reversed((*_SOURCE, *_BUILD, *_EQUIVALENCE, *_LOOP, *_MEASUREMENT)):
        command = option(command)
    return command


@frozen
class OptimizeSettings:
    """What the options of one call say, by the names that click gives them; ``None``: not said."""

    source: Path | None
    kernel: str | None
    build_command: str | None
    compile_database: Path | None
    link_flags: str | None
    project: Path | None
    binary: Path | None
    build_time_limit: float
    validate: tuple[str, ...]
    outputs: tuple[str, ...]
    rtol: float
    atol: float
    allow_unverified: bool
    min_improvement: float
    max_iters: int
    time_budget: float | None
    patience: int
    auto_approve: bool
    step_by_step: bool
    in_place: bool
    resume: Path | None
    keep_command: bool
    sign: Path | None
    allow_occupancy_loss: bool
    traffic_gate: bool
    placement_check: bool | None
    force: bool
    device: str | None
    metric: str | None
    runs: int | None
    roofline: bool | None
    focus_critical: bool | None
    collector: str | None
    time_limit: float | None
    debug: bool
    as_json: bool
    output: Path | None

    @classmethod
    def of(cls, flags: Mapping[str, Any]) -> OptimizeSettings:
        """From a command's flags; those of its own and of plugins are left out."""
        return cls(**{field.name: flags[field.name] for field in attrs.fields(cls)})
