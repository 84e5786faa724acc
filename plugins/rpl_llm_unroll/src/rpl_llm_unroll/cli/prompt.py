"""``rpl prompt``: what a language model would be told about a kernel; nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import DeviceOption, option, settled, takes
from rpl_core.cli.session import session_of
from rpl_core.values import frozen
from rpl_llm_unroll.cli.llm_optimize import FormOptions

if TYPE_CHECKING:
    from rpl_llm_unroll.settings import Form

_PATH = click.Path(path_type=Path)


@frozen
class PromptSettings:
    """One ``rpl prompt``; ``None``: not said. ``flags`` also hold the options of plugins."""

    form: Form
    flags: Mapping[str, Any]
    kernel: str | None = option(
        "--kernel", metavar="NAME", help="The kernel (default: the heaviest one of SOURCE)."
    )
    run: Path | None = option("--from", type=_PATH, metavar="RUN", help="Take this run instead of profiling.")
    binary: Path | None = option(
        "--binary", type=_PATH, metavar="FILE", help="The built program (default: the command's)."
    )
    runs: int = option("--runs", setting="runs", type=int, help="Timing runs of the profile (default 3).")
    roofline: bool = option(
        "--roofline",
        setting="roofline",
        is_flag=True,
        default=None,
        help="Collect hardware counters, too.",
    )
    focus_critical: bool = option(
        "--focus-critical",
        setting="focus-critical",
        is_flag=True,
        default=None,
        help="Trace copies and the HIP API, too.",
    )
    collector: str | None = option(
        "--collector", setting="collector", metavar="NAME", help="Collector to record with."
    )
    time_limit_s: float | None = option(
        "--time-limit",
        setting="time-limit",
        type=float,
        metavar="S",
        help="Seconds that one pass may take.",
    )
    debug: bool = option("--debug", is_flag=True, help="Show the profiler's log.")
    as_json: bool = option("--json", is_flag=True, help="Print one JSON document.")
    output: Path | None = option(
        "-o", "--output", type=_PATH, help="Run directory of the profile (default: rpl-runs/...)."
    )
    runs_directory: Path = option(setting="runs-directory", parse=Path)


@click.command("prompt", short_help="Print what a language model would be told about a kernel.")
@click.argument("source", type=_PATH)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@takes(FormOptions, DeviceOption, PromptSettings)
@click.pass_context
def prompt(context: click.Context, /, source: Path, application: tuple[str, ...], **flags: Any) -> None:
    """Print the prompt for a kernel of SOURCE, with the figures of a run of the application.

    The application is profiled as `rpl profile` does it, or --from takes a run that exists. Nothing is sent
    anywhere. What was not collected is said to be missing.

    \b
    rpl prompt saxpy.hip "./saxpy 100" --roofline
    rpl prompt saxpy.hip --from rpl-runs/latest --compact
    """
    from rpl_llm_unroll.cli.prompt_command import print_prompt

    session = session_of(context)
    form = settled(FormOptions, session, flags).form()
    given = settled(PromptSettings, session, flags, form=form, flags=flags)
    print_prompt(session, source, application, given)
