"""``rpl prompt``: what a language model would be told about a kernel; nothing is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_llm_unroll.cli.llm_optimize import chosen_form, form_options

_PATH = click.Path(path_type=Path)


@click.command("prompt", short_help="Print what a language model would be told about a kernel.")
@click.argument("source", type=_PATH)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@form_options
@click.option("--kernel", metavar="NAME", help="The kernel (default: the heaviest one of SOURCE).")
@click.option("--from", "run", type=_PATH, metavar="RUN", help="Take this run instead of profiling.")
@click.option("--binary", type=_PATH, metavar="FILE", help="The built program (default: the command's).")
@click.option("--device", metavar="NAME", help="Device family or product, see `rpl devices`.")
@click.option("--runs", type=int, help="Timing runs of the profile (default 3).")
@click.option("--roofline", is_flag=True, default=None, help="Collect hardware counters, too.")
@click.option("--focus-critical", is_flag=True, default=None, help="Trace copies and the HIP API, too.")
@click.option("--collector", metavar="NAME", help="Collector to record with.")
@click.option("--time-limit", type=float, metavar="S", help="Seconds that one pass may take.")
@click.option("--debug", is_flag=True, help="Show the profiler's log.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-o", "--output", type=_PATH, help="Run directory of the profile (default: rpl-runs/...).")
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

    print_prompt(context, source, application, chosen_form(flags), flags)
