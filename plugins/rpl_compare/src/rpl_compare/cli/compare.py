"""``rpl compare``: two recordings against each other, commands in turns, or a history of recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand, option, option_values, settled, takes
from rpl_core.cli.session import session_of
from rpl_core.errors import UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.options import Options


def _share(word: str, *, least: float) -> Callable[[str], float]:
    """``3%`` and ``3`` are both 0.03; ``least`` is in percent."""

    def parse(text: str) -> float:
        try:
            percent = float(text.strip().removesuffix("%"))
        except ValueError:
            percent = float("nan")
        if not least <= percent <= 1000:
            raise UsageError(
                f"{word} takes percent from {least:g} to 1000, not {text!r}",
                next_step=f"for example {word} 3%",
            )
        return percent / 100

    return parse


def _alpha(value: float) -> float:
    if not 0 < value < 0.5:
        raise UsageError(f"--alpha must lie between 0 and 0.5, not {value:g}")
    return value


@frozen(eq=False)
class CompareSettings:
    """One ``rpl compare``; ``None``: not said."""

    range: str | None  # of a plugin, as this call says it
    of_plugins: Options  # with what variables and files say
    fail_above: float = option(
        "--fail-above",
        parse=_share("--fail-above", least=0.01),
        default="3%",
        show_default=True,
        metavar="PERCENT",
        help="Allowed slow-down.",
    )
    kernels: tuple[str, ...] = option(
        "--kernel", multiple=True, metavar="NAME", help="Only kernels with NAME decide."
    )
    alpha: float = option(
        "--alpha",
        parse=_alpha,
        type=float,
        default=0.01,
        show_default=True,
        help="Error probability of the answer.",
    )
    statistic: str = option(
        "--statistic",
        type=click.Choice(["sum", "median"]),
        default="sum",
        show_default=True,
        help="What stands for a kernel in one run: the sum or the median of its dispatches.",
    )
    min_share: float = option(
        "--min-share",
        parse=_share("--min-share", least=0.0),
        default="1%",
        show_default=True,
        metavar="PERCENT",
        help="Smaller kernels do not decide.",
    )
    force: bool = option(
        "--force", is_flag=True, help="Judge in spite of noise, drift or another number of processes."
    )
    each_is_a_run: bool = option(
        "--each-is-a-run", is_flag=True, help="Every entry of a plain folder is a repeated run."
    )
    history: Path | None = option(
        "--history", type=click.Path(path_type=Path), metavar="DIR", help="Find steps over a folder of runs."
    )
    interleaved: bool = option(
        "--interleaved",
        is_flag=True,
        help="Measure --base and --new in pairs of random order, as those two mean.",
    )
    base_command: str | None = option("--base", metavar="CMD", help="Command line of the old version.")
    new_command: str | None = option("--new", metavar="CMD", help="Command line of the new version.")
    pairs: int = option("--pairs", type=int, default=30, show_default=True, help="Most pairs to measure.")
    collector: str | None = option(
        "--collector", setting="collector", metavar="NAME", help="Collector to record with."
    )
    focus_critical: bool = option(
        "--focus-critical",
        setting="focus-critical",
        is_flag=True,
        default=None,
        help="Trace copies and the host API too.",
    )
    time_limit_s: float | None = option(
        "--time-limit",
        setting="time-limit",
        type=float,
        metavar="S",
        help="Seconds that one process run may take.",
    )
    total_time_s: float | None = option(
        "--total-time", type=float, metavar="S", help="Start no pair after this many seconds."
    )
    debug: bool = option("--debug", is_flag=True, help="Show the profiler's log.")
    output: Path | None = option(
        "-o", "--output", type=click.Path(path_type=Path), help="Directory for the results."
    )
    html: Path | None = option(
        "--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page for a browser too."
    )
    annotate: str | None = option(
        "--annotate",
        type=click.Choice(["github"]),
        help="Write annotations to stderr, and a step summary where the job has one.",
    )
    junit: Path | None = option(
        "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML."
    )
    badge: Path | None = option(
        "--badge",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write a badge: .svg, or .json for shields.",
    )
    as_json: bool = option("--json", is_flag=True, help="Print the document on stdout.")
    quiet: bool = option("--quiet", is_flag=True, help="Print only the worst change in percent.")
    runs_directory: Path = option(setting="runs-directory", parse=Path)


@click.command("compare", cls=PluginOptionsCommand)
@click.argument("base", required=False, type=click.Path(path_type=Path))
@click.argument("new", required=False, type=click.Path(path_type=Path))
@takes(CompareSettings)
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
    from rpl_core.process_start import import_numpy_alone

    import_numpy_alone()
    from rpl_compare.cli import compare_command

    session = session_of(context)
    of_plugins = option_values(session, "compare", flags)
    settings = settled(CompareSettings, session, flags, range=flags["range"], of_plugins=of_plugins)
    if settings.history is not None:
        return compare_command.history(session, base, settings.history, settings)
    if settings.interleaved or settings.base_command or settings.new_command:
        return compare_command.interleaved(session, base, settings)
    return compare_command.recordings(session, base, new, settings)
