"""``rpl profile``: record an application (or take a recording) and analyse it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_core.cli.command_options import KEEP, PluginOptionsCommand, analysis_options, require_one_result_form
from rpl_core.cli.session import session_of

#: Headings of the help with the options below them, by the names of parameters.
_GROUPS = {
    "What is recorded": (
        *("runs", "collector", "roofline", "counters", "api", "recordings", "keep", "time_limit"),
        *("allow_dangerous_counters", "keep_command"),
    ),
    "Analysis": ("device",),
    "Output": ("output", "as_json", "quiet", "focus_critical"),
    "Other": ("dry_run", "debug", "help"),
}


@click.command("profile", cls=PluginOptionsCommand, groups=_GROUPS)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@click.option("--runs", type=int, help="Timing runs (default 3).")
@click.option("--collector", metavar="NAME", help="Collector to record with.")
@click.option("--roofline", is_flag=True, default=None, help="Collect hardware counters in separate passes.")
@click.option(
    "--counters", metavar="A,B,...", help="Counters to collect beside the recommended set of --roofline."
)
@click.option(
    "--api/--no-api",
    default=None,
    help="Record API calls and copies, and run once without them for what that costs (default: on).",
)
@click.option(
    "--focus-critical", is_flag=True, default=None, help="Put the critical path first in the output."
)
@click.option(
    "--from", "recordings", multiple=True, type=click.Path(path_type=Path), help="Take a recording."
)
@KEEP
@click.option("--time-limit", type=float, metavar="S", help="Seconds that one pass may take.")
@click.option("--allow-dangerous-counters", is_flag=True, help="Collect counters that can hang the GPU.")
@click.option(
    "--keep-command", is_flag=True, help="Keep secrets of the command in run.json (masked otherwise)."
)
@click.option("--dry-run", is_flag=True, help="Print the commands and passes; run nothing.")
@click.option("--debug", is_flag=True, help="Show the profiler's log.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Run directory (default: rpl-runs/...)."
)
@analysis_options
@click.pass_context
def profile(context: click.Context, /, application: tuple[str, ...], **flags: Any) -> int:
    """Record APPLICATION and write profile.json, roofline.json, dag.json and analysis.json.

    Everything after `--` belongs to the application. Without `--`, rpl's own options are rpl's wherever
    they stand. One quoted string is split as a shell would.

    \b
    rpl profile --device NAME -- ./app 100
    rpl profile --device NAME --roofline --runs 5 "./app 100"
    rpl profile --device NAME --from recording_results.db
    """
    from rpl_core.cli.process_start import import_numpy_alone

    import_numpy_alone()
    from rpl_core.cli.profile_command import ProfileCall, from_recordings, record

    call = ProfileCall.of(session_of(context), flags)
    require_one_result_form(as_json=call.as_json, quiet=call.quiet)
    return from_recordings(call, application) if call.recordings else record(call, application)
