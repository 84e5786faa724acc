"""What ``rpl compare`` does, behind its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from rpl_analysis.options import NAMES
from rpl_compare.comparison.model import CompareRule, Outcome
from rpl_core.cli.output import emphasised, terminal_width
from rpl_core.errors import NoVerdictError, UsageError
from rpl_measure.samples import Statistic

if TYPE_CHECKING:
    from rpl_compare.ci import Result
    from rpl_compare.cli.compare import CompareSettings
    from rpl_compare.comparison.compare import CompareRequest, Comparison
    from rpl_compare.contract import ItemPart, OneSidedKernel
    from rpl_core.cli.session import Session
    from rpl_core.model.recording import Recording


def recordings(session: Session, base: Path | None, new: Path | None, settings: CompareSettings) -> int:
    """Two recordings, or one directory of an interleaved comparison."""
    from rpl_compare.comparison.compare import compare_recordings
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
        from rpl_compare.comparison.compare import compare_stored_pairs

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


def interleaved(session: Session, base: Path | None, settings: CompareSettings) -> int:
    """Measure two commands in turns and compare the pairs."""
    from rpl_compare.comparison.compare import measure_and_compare
    from rpl_core.cli.profile import log_sink
    from rpl_core.process.runner import application_command
    from rpl_core.profiling import choose_collector
    from rpl_core.run_directory.manifest import default_path
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


def history(session: Session, base: Path | None, folder: Path, settings: CompareSettings) -> int:
    """Steps over a folder of recordings."""
    from rpl_compare.ci import result_of_history
    from rpl_compare.comparison.history import compare_history
    from rpl_compare.comparison.text import document_names, history_text
    from rpl_compare.html.page import history_page
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
    from rpl_compare.comparison.text import compare_text, document_names
    from rpl_core.documents import to_json

    document = compare_document(comparison)
    _write(settings, "compare", to_json(document))
    if settings.html is not None:
        from rpl_compare.html.page import compare_page

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
    from rpl_compare.comparison.compare import CompareRequest
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
    for option, given in options.items():
        if given:
            raise UsageError(f"{option} does not belong here: {because}")
