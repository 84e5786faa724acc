"""What ``rpl autotune`` does, behind its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import ApplicationError, InterruptedRunError, UsageError
from rpl_core.exit_codes import ExitCode
from rpl_core.text.table import counted

if TYPE_CHECKING:
    from rpl_autotune.cli.autotune_call import AutotuneSettings
    from rpl_autotune.contracts.autotune import AutotuneDocument
    from rpl_autotune.search.request import TuningRequest, TuningTools
    from rpl_autotune.search.tuning import Tuning
    from rpl_core.cli.session import Session

_NAME = "autotune.json"


def run_autotune(session: Session, settings: AutotuneSettings) -> int:
    """One search, or a look at a finished one."""
    if settings.show is not None:
        _print(session, _stored(session, settings.show), as_json=settings.as_json)
        return int(ExitCode.OK)
    from rpl_autotune.cli.autotune_call import AutotuneCall, space_with_code

    call = AutotuneCall(session, settings)
    space = call.space()
    scratch = call.scratch()
    space = space_with_code(call, space, scratch)
    request, tools = call.request(space, scratch), call.tools(space)
    session.output.note(f"{counted(len(space), 'configuration')}; results go to {scratch}")
    document, failure = _search(session, request, tools)
    _write(session, request, document, settings)
    if failure is not None:
        raise failure
    _print(session, document, as_json=settings.as_json)
    if document.best_config is None:
        raise _nothing_runs(document)
    return int(ExitCode.OK)


def _stored(session: Session, directory: Path) -> AutotuneDocument:
    from rpl_analysis.documents.load import load_document
    from rpl_autotune.contracts.autotune import AutotuneDocument
    from rpl_autotune.contracts.kinds import AutotuneContract

    known = (c.value for c in session.host.catalog.documents().contributions)
    document = load_document(directory, AutotuneContract(), known)
    assert isinstance(document, AutotuneDocument)
    return document


def _search(
    session: Session, request: TuningRequest, tools: TuningTools
) -> tuple[AutotuneDocument, InterruptedRunError | None]:
    """The finished document; with the error of an interrupt, after which it holds what there is."""
    import attrs

    from rpl_autotune.search.outcome import autotune_document
    from rpl_autotune.search.tuning import Tuning

    with session.output.progress("autotune", total=request.budget + 1) as step:
        tuning = Tuning(request, attrs.evolve(tools, step=step))
        try:
            end, result = _measured(tuning)
        except (KeyboardInterrupt, InterruptedRunError):
            return _interrupted(tuning)
        return autotune_document(tuning, end, result), None


def _measured(tuning: Tuning) -> Any:
    from rpl_autotune.search.outcome import measure_finally, without_final
    from rpl_autotune.search.recorded import RecordedRequest
    from rpl_autotune.search.request import JobWorkers
    from rpl_core.interfaces.executor import Workers
    from rpl_core.plugins.boundary import plugin_boundary

    tools = tuning.tools
    what = f"executor {tools.executor.name!r}"
    with plugin_boundary(tools.executor_plugin, what):
        opened: object = tools.executor.open(tools.executor_request)
        if not isinstance(opened, Workers):
            raise TypeError(f"Workers were expected, not {type(opened).__name__}")
    with JobWorkers(opened, tools.executor_plugin, what) as workers:
        end = tuning.run(workers)
        asked = tools.executor_request
        if isinstance(asked, RecordedRequest) and asked.recording is not None:
            return end, without_final(tuning, "nothing runs in a recorded space")
        return end, measure_finally(tuning, workers)


def _interrupted(tuning: Tuning) -> tuple[AutotuneDocument, InterruptedRunError]:
    from rpl_autotune.search.outcome import autotune_document, without_final

    kept = f" in {tuning.tools.cache.path}" if tuning.tools.cache is not None else ""
    document = autotune_document(tuning, "interrupted", without_final(tuning, "the search was interrupted"))
    return document, InterruptedRunError(
        f"interrupted; kept{kept}: {counted(len(tuning.evaluations), 'evaluation')}",
        next_step="run the same command again: it goes on from there",
    )


def _write(
    session: Session, request: TuningRequest, document: AutotuneDocument, settings: AutotuneSettings
) -> None:
    from rpl_autotune.recorded_space import write_kernel_tuner_cache, write_t4
    from rpl_core.documents.bundle import to_json
    from rpl_core.files.atomic import write_atomic

    write_atomic(request.scratch / _NAME, to_json(document))
    if settings.export_cache is not None:
        write_kernel_tuner_cache(document, request.space, settings.export_cache)
    if settings.export_t4 is not None:
        write_t4(document, settings.export_t4)
    if document.final is not None:
        _write_report(session, request, document)


def _write_report(session: Session, request: TuningRequest, document: AutotuneDocument) -> None:
    """``report.html``: the documents of the winner's run with the section on the search."""
    from rpl_autotune.search.outcome import KEPT_RUN
    from rpl_core.files.atomic import write_atomic
    from rpl_core.interfaces.renderer import RenderRequest, SectionOf
    from rpl_core.model.value_checks import require_value
    from rpl_core.pipeline import AnalysisRequest, analyse_paths
    from rpl_core.plugins.boundary import plugin_boundary
    from rpl_core.run_directory.layout import is_run_directory

    run = request.scratch / KEPT_RUN
    renderers = session.host.catalog.renderers()
    if "html" not in renderers or not is_run_directory(run):
        why = "no plugin renders HTML (rpl-report does)" if "html" not in renderers else f"there is no {run}"
        session.output.note(f"no report.html: {why}")
        return
    analysis = AnalysisRequest(device=request.timing.device)
    documents, _ = analyse_paths((run,), analysis, session.host)
    sections = session.host.catalog.report_sections().contributions
    asked = RenderRequest(
        {**documents.by_name(), "autotune": document},
        sections=tuple(SectionOf(c.plugin, c.value) for c in sections),
        timeline_reason="see `rpl report --format html` for the timeline of this run",
    )
    with plugin_boundary(renderers.plugin_of("html"), "renderer 'html'"):
        page = require_value(renderers.get("html").render(asked), str)
    write_atomic(request.scratch / "report.html", page)
    session.output.note(f"report: {request.scratch / 'report.html'}")


def _print(session: Session, document: AutotuneDocument, *, as_json: bool) -> None:
    from rpl_autotune.report.text import document_text
    from rpl_core.cli.output import terminal_width
    from rpl_core.documents.bundle import to_json

    session.output.raw(to_json(document) if as_json else document_text(document, terminal_width()))


def _nothing_runs(document: AutotuneDocument) -> ApplicationError | UsageError:
    reasons = [item.reason for item in document.evaluations if item.reason]
    most = max(dict.fromkeys(reasons), key=reasons.count) if reasons else "no reason is known"
    return ApplicationError(
        f"none of the {document.evaluated_configs} configurations that were tried has a time; "
        f"most often: {most}",
        next_step="run one of them by hand; see autotune.json for each",
    )
