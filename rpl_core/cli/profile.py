"""``rpl profile``: record an application (or take a recording) and analyse it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import (
    AnalysisOptions,
    PluginOptionsCommand,
    analysis_request,
    keep_option,
)
from rpl_core.cli.declared_options import option, settled, takes
from rpl_core.cli.session import Session, session_of
from rpl_core.errors import UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.pipeline import AnalysisRequest


def _counters(text: str | None) -> tuple[str, ...]:
    """Names in the order given, each once. Raises ``UsageError`` for what can't be a counter's name."""
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    for name in names:
        if not name.isascii() or not name.replace("_", "").replace("[", "").replace("]", "").isalnum():
            raise UsageError(f"{name!r} is no counter", next_step="separate names by commas: A,B")
    return names


@frozen
class ProfileCall:
    """One ``rpl profile``, settings resolved. ``flags`` also hold the options of plugins."""

    session: Session
    flags: Mapping[str, Any]
    common: AnalysisOptions
    runs: int = option("--runs", setting="runs", type=int, help="Timing runs (default 3).")
    collector: str | None = option(
        "--collector", setting="collector", metavar="NAME", help="Collector to record with."
    )
    roofline: bool = option(
        "--roofline",
        setting="roofline",
        is_flag=True,
        default=None,
        help="Collect hardware counters in separate passes.",
    )
    counters: tuple[str, ...] = option(
        "--counters",
        parse=_counters,
        metavar="A,B,...",
        help="Counters to collect beside the recommended set of --roofline.",
    )
    api: bool = option(
        "--api/--no-api",
        setting="api",
        default=None,
        help="Record API calls and copies, and run once without them for what that costs (default: on).",
    )
    focus_critical: bool = option(
        "--focus-critical",
        setting="focus-critical",
        is_flag=True,
        default=None,
        help="Put the critical path first in the output.",
    )
    recordings: tuple[Path, ...] = option(
        "--from", multiple=True, type=click.Path(path_type=Path), help="Take a recording."
    )
    keep: bool = keep_option()
    time_limit_s: float | None = option(
        "--time-limit",
        setting="time-limit",
        type=float,
        metavar="S",
        help="Seconds that one pass may take.",
    )
    allow_dangerous_counters: bool = option(
        "--allow-dangerous-counters", is_flag=True, help="Collect counters that can hang the GPU."
    )
    keep_command: bool = option(
        "--keep-command", is_flag=True, help="Keep secrets of the command in run.json (masked otherwise)."
    )
    dry_run: bool = option("--dry-run", is_flag=True, help="Print the commands and passes; run nothing.")
    debug: bool = option("--debug", is_flag=True, help="Show the profiler's log.")
    output: Path | None = option(
        "-o", "--output", type=click.Path(path_type=Path), help="Run directory (default: rpl-runs/...)."
    )
    runs_directory: Path = option(setting="runs-directory", parse=Path)

    def analysis(self, root: Path | None) -> AnalysisRequest:
        """The analysis that was asked for; see ``analysis_request``."""
        return analysis_request(self.session, self.flags, root, command="profile")


#: Headings of the help with the options below them, by the names of parameters.
_GROUPS = {
    "What is recorded": (
        *("runs", "collector", "roofline", "counters", "api", "recordings", "keep", "time_limit_s"),
        *("allow_dangerous_counters", "keep_command"),
    ),
    "Analysis": ("device",),
    "Output": ("output", "as_json", "quiet", "focus_critical"),
    "Other": ("dry_run", "debug", "help"),
}


@click.command("profile", cls=PluginOptionsCommand, groups=_GROUPS)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@takes(ProfileCall, AnalysisOptions)
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
    from rpl_core.cli.profile_command import from_recordings, record

    session = session_of(context)
    common = settled(AnalysisOptions, session, flags)
    call = settled(ProfileCall, session, flags, session=session, flags=flags, common=common)
    common.require_one_form()
    return from_recordings(call, application) if call.recordings else record(call, application)
