"""``rpl compare``: two recordings against each other, commands in turns, or a history of recordings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from rpl_analysis.options import NAMES
from rpl_core.cli.command_options import PluginOptionsCommand, option, option_values, settled, takes
from rpl_core.cli.output import emphasised, terminal_width
from rpl_core.cli.session import session_of
from rpl_core.errors import NoVerdictError, UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_compare.ci import Result
    from rpl_compare.comparison import CompareRequest, Comparison
    from rpl_compare.comparison.judging import Outcome
    from rpl_compare.contract import ItemPart, OneSidedKernel
    from rpl_core.cli.session import Session
    from rpl_core.interfaces.options import Options
    from rpl_core.model.recording import Recording


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
    session = session_of(context)
    of_plugins = option_values(session, "compare", flags)
    settings = settled(CompareSettings, session, flags, range=flags["range"], of_plugins=of_plugins)
    if settings.history is not None:
        return _history(session, base, settings.history, settings)
    if settings.interleaved or settings.base_command or settings.new_command:
        return _interleaved(session, base, settings)
    return _recordings(session, base, new, settings)


def _recordings(session: Session, base: Path | None, new: Path | None, settings: CompareSettings) -> int:
    """Two recordings, or one directory of an interleaved comparison."""
    from rpl_compare.comparison import compare_recordings
    from rpl_measure.manifest import is_comparison_directory
    from rpl_measure.side import load_side, range_of_sides

    _refuse({"--total-time": settings.total_time_s}, because="only --interleaved measures")
    if base is None:
        raise UsageError(
            "nothing to compare",
            next_step='measure two versions with `rpl compare --base "./app_old 100" --new "./app_new 100"`, '
            "or name two recordings: `rpl compare BASE NEW`",
        )
    request = _request(settings)
    readers = session.host.catalog.readers().contributions
    if new is None:
        if not is_comparison_directory(base):
            raise UsageError(
                f"{base} is no interleaved comparison, so a second recording is needed",
                next_step="`rpl compare BASE NEW`",
            )
        from rpl_compare.comparison import compare_stored_pairs

        _refuse({"--range": settings.range}, because="an interleaved comparison judges whole runs")
        of_pairs = partial(_recordings_of_pairs, session, base)
        return _answer(session, compare_stored_pairs(base, readers, request), settings, of_pairs)
    each = settings.each_is_a_run
    name = range_of_sides((base, new), request.range)
    sides = [load_side(path, readers, each_is_a_run=each, within=name) for path in (base, new)]
    comparison = compare_recordings(sides[0], sides[1], request)
    return _answer(session, comparison, settings, lambda: [side.recording for side in sides])


def _recordings_of_pairs(session: Session, directory: Path) -> list[Recording]:
    """Both run directories of an interleaved comparison."""
    from rpl_core.ingest import load_recording
    from rpl_measure.manifest import FOLDERS

    readers = session.host.catalog.readers().contributions
    return [load_recording((directory / FOLDERS[label],), readers) for label in ("base", "new")]


def _interleaved(session: Session, base: Path | None, settings: CompareSettings) -> int:
    """Measure two commands in turns and compare the pairs."""
    from rpl_compare.comparison import measure_and_compare
    from rpl_core.cli.profile import log_sink
    from rpl_core.process import application_command
    from rpl_core.profiling import choose_collector
    from rpl_core.run_directory import default_path
    from rpl_measure.interleaved import MeasureRequest

    _refuse({"--range": settings.range}, because="an interleaved comparison judges whole runs")
    if base is not None or not (settings.base_command and settings.new_command):
        raise UsageError(
            "--base and --new take one command each, and there are no recordings beside them",
            next_step='`rpl compare --interleaved --base "./app_old 100" --new "./app_new 100"`',
        )
    base_command = application_command((settings.base_command,))
    measure = MeasureRequest(
        base=base_command,
        new=application_command((settings.new_command,)),
        directory=settings.output or default_path(settings.runs_directory, ("compare",)),
        most_pairs=settings.pairs,
        trace_dependencies=settings.focus_critical,
        time_limit_s=settings.time_limit_s,
        total_time_s=settings.total_time_s,
    )
    with session.output.progress("compare", total=2 * settings.pairs + 2) as step:
        comparison = measure_and_compare(
            measure,
            _request(settings),
            collector=choose_collector(session.host, settings.collector, settings.of_plugins),
            host=session.host,
            log=log_sink(session, settings.debug),
            step=step,
        )
    session.output.note(f"recorded in {measure.directory}")
    of_pairs = partial(_recordings_of_pairs, session, measure.directory)
    return _answer(session, comparison, attrs.evolve(settings, output=measure.directory), of_pairs)


def _history(session: Session, base: Path | None, folder: Path, settings: CompareSettings) -> int:
    """Steps over a folder of recordings."""
    from rpl_compare.ci import result_of_history
    from rpl_compare.comparison.documents import compare_history
    from rpl_compare.comparison.judging import Outcome
    from rpl_compare.comparison.text import document_names, history_page, history_text
    from rpl_core.documents import to_json

    if base is not None:
        raise UsageError("--history takes one folder and no further recordings")
    measured = {
        "--interleaved": settings.interleaved,
        "--base": settings.base_command,
        "--new": settings.new_command,
    }
    _refuse(measured, because="--history measures nothing")
    document = compare_history(folder, session.host.catalog.readers().contributions, _request(settings))
    _write(settings, "history", to_json(document))
    names = document_names(document.kernels, settings.of_plugins[NAMES])
    if settings.html is not None:
        _write_page(session, settings.html, history_page(document, names))
    _tell_ci(session, settings, result_of_history(document, names))
    if settings.quiet:
        steps = [step for item in (*document.application, *document.kernels) for step in item.steps]
        session.output.line(f"{100 * max((step.change for step in steps), default=0.0):+.2f}")
    else:
        text = history_text(document, settings.of_plugins[NAMES], terminal_width())
        session.output.raw(to_json(document) if settings.as_json else emphasised(text))
    return _exit_code(session, document.diagnostics, Outcome(document.outcome), settings)


def _answer(
    session: Session,
    comparison: Comparison,
    settings: CompareSettings,
    recordings: Callable[[], Sequence[Recording]],
) -> int:
    from rpl_compare.ci import result_of_comparison
    from rpl_compare.comparison.documents import compare_document
    from rpl_compare.comparison.text import compare_page, compare_text, document_names
    from rpl_core.documents import to_json

    document = compare_document(comparison)
    _write(settings, "compare", to_json(document))
    if settings.html is not None:
        page = compare_page(comparison, document, recordings(), session.host, settings.of_plugins[NAMES])
        _write_page(session, settings.html, page)
    kernels: tuple[ItemPart | OneSidedKernel, ...] = (
        *document.kernels,
        *document.only_base,
        *document.only_new,
    )
    names = document_names(kernels, settings.of_plugins[NAMES])
    _tell_ci(session, settings, result_of_comparison(document, names))
    if settings.quiet:
        worst = document.gate.worst_change
        if worst is None:
            raise NoVerdictError(f"no change can be estimated: {'; '.join(document.gate.reasons)}")
        session.output.line(f"{100 * worst:+.2f}")
    else:
        text = compare_text(document, settings.of_plugins[NAMES], terminal_width())
        session.output.raw(to_json(document) if settings.as_json else emphasised(text))
    return _exit_code(session, document.diagnostics, comparison.gate.outcome, settings)


def _write_page(session: Session, place: Path, page: str) -> None:
    from rpl_core.files import write_atomic

    write_atomic(place, page, named=True)
    session.output.note(f"written to {place}")


def _tell_ci(session: Session, settings: CompareSettings, result: Result) -> None:
    """Annotations go to stderr: stdout belongs to the result, and GitHub reads both."""
    from rpl_compare.ci import append_summary, files_of, github_annotations
    from rpl_core.files import write_atomic

    for place, text in files_of(result, settings.junit, settings.badge):
        write_atomic(place, text, named=True)
        session.output.note(f"written to {place}")
    if settings.annotate == "github":
        for line in github_annotations(result):
            click.echo(line, err=True)
        append_summary(result)


def _exit_code(
    session: Session, diagnostics: tuple[Any, ...], outcome: Outcome, settings: CompareSettings
) -> int:
    from rpl_compare.comparison.judging import EXIT_CODES

    if not settings.quiet:
        for diagnostic in diagnostics:
            session.output.diagnostic(diagnostic)
    return int(EXIT_CODES[outcome])


def _write(settings: CompareSettings, name: str, text: str) -> None:
    from rpl_core.files import write_atomic

    if settings.output is not None:
        settings.output.mkdir(parents=True, exist_ok=True)
        write_atomic(settings.output / f"{name}.json", text)


def _request(settings: CompareSettings) -> CompareRequest:
    from rpl_analysis.range_option import RANGE
    from rpl_compare.comparison import CompareRequest
    from rpl_compare.comparison.judging import CompareRule
    from rpl_measure.samples import Statistic
    from rpl_measure.side import SYNTHETIC_VARIABLE

    return CompareRequest(
        rule=CompareRule(
            fail_above=settings.fail_above,
            alpha=settings.alpha,
            min_share=settings.min_share,
            forced=settings.force,
        ),
        statistic=Statistic(settings.statistic),
        kernels=settings.kernels,
        range=settings.of_plugins[RANGE],
        allow_synthetic=os.environ.get(SYNTHETIC_VARIABLE) == "1",
    )


def _refuse(options: Mapping[str, object], *, because: str) -> None:
    for flag, given in options.items():
        if given:
            raise UsageError(f"{flag} does not belong here: {because}")
