"""``rpl compare``: two recordings against each other, commands in turns, or a history of recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand
from rpl_core.cli.session import session_of


@click.command("compare", cls=PluginOptionsCommand)
@click.argument("base", required=False, type=click.Path(path_type=Path))
@click.argument("new", required=False, type=click.Path(path_type=Path))
@click.option("--fail-above", default="3%", show_default=True, metavar="PERCENT", help="Allowed slow-down.")
@click.option("--kernel", "kernels", multiple=True, metavar="NAME", help="Only kernels with NAME decide.")
@click.option("--alpha", type=float, default=0.01, show_default=True, help="Error probability of the answer.")
@click.option(
    "--statistic",
    type=click.Choice(["sum", "median"]),
    default="sum",
    show_default=True,
    help="What stands for a kernel in one run: the sum or the median of its dispatches.",
)
@click.option(
    "--min-share", default="1%", show_default=True, metavar="PERCENT", help="Smaller kernels do not decide."
)
@click.option("--force", is_flag=True, help="Judge in spite of noise, drift or another number of processes.")
@click.option("--each-is-a-run", is_flag=True, help="Every entry of a plain folder is a repeated run.")
@click.option(
    "--history", type=click.Path(path_type=Path), metavar="DIR", help="Find steps over a folder of runs."
)
@click.option(
    "--interleaved",
    is_flag=True,
    help="Measure --base and --new in pairs of random order, as those two mean.",
)
@click.option("--base", "base_command", metavar="CMD", help="Command line of the old version.")
@click.option("--new", "new_command", metavar="CMD", help="Command line of the new version.")
@click.option("--pairs", type=int, default=30, show_default=True, help="Most pairs to measure.")
@click.option("--collector", metavar="NAME", help="Collector to record with.")
@click.option("--focus-critical", is_flag=True, default=None, help="Trace copies and the host API too.")
@click.option("--time-limit", type=float, metavar="S", help="Seconds that one process run may take.")
@click.option("--total-time", type=float, metavar="S", help="Start no pair after this many seconds.")
@click.option("--debug", is_flag=True, help="Show the profiler's log.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Directory for the results.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page for a browser too."
)
@click.option(
    "--annotate",
    type=click.Choice(["github"]),
    help="Write annotations to stderr, and a step summary where the job has one.",
)
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option(
    "--badge",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a badge: .svg, or .json for shields.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the document on stdout.")
@click.option("--quiet", is_flag=True, help="Print only the worst change in percent.")
@click.pass_context
def compare(context: click.Context, /, base: Path | None, new: Path | None, **flags: Any) -> int:
    """Tell whether NEW is slower than BASE: per kernel and as a whole, or that it can't be told.

    BASE and NEW are run directories, folders of run directories, or recordings. BASE alone may be the
    directory of an earlier interleaved comparison. Exit codes: 0 nothing regressed, 1 regression, 75 the
    runs do not tell, 65 recordings of different GPUs.

    \b
    rpl compare --interleaved --base "./app_old 100" --new "./app_new 100"
    rpl compare rpl-runs/main rpl-runs/my-branch --fail-above 3%
    rpl compare --history rpl-runs --html history.html
    rpl compare main branch --annotate github --junit perf.xml
    """
    from rpl_core.cli.process_start import import_numpy_alone

    import_numpy_alone()
    from rpl_compare.cli import compare_command

    session = session_of(context)
    settings = compare_command.CompareSettings.of(session, flags)
    if settings.history is not None:
        return compare_command.history(session, base, settings.history, settings)
    if settings.interleaved or settings.base_command or settings.new_command:
        return compare_command.interleaved(session, base, settings)
    return compare_command.recordings(session, base, new, settings)
