"""What ``rpl prompt`` does, behind its options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, UsageError
from rpl_llm_unroll.disclosure import suspicious_lines

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.documents import Documents
    from rpl_llm_unroll.cli.prompt import PromptSettings
    from rpl_llm_unroll.prompt.model import Prompt
    from rpl_llm_unroll.settings import Form
    from rpl_optimize.interfaces.transformation import KernelSource


def print_prompt(session: Session, source: Path, application: tuple[str, ...], given: PromptSettings) -> None:
    """Print it as text or JSON; what looks like a secret is noted, since nothing is sent here."""
    from rpl_optimize.transform import read_source

    text = read_source(source, given.kernel)
    documents, command = _documents(session, application, given)
    built = _prompt(session, text, documents, given.binary or _program(command), given.form)
    for found in suspicious_lines(built.text(), text.text):
        session.output.note(
            f"warning: {found.describe(source.name)} looks like {found.kind}; llm-optimize would not send it"
        )
    if given.as_json:
        session.output.json(built.plain())
    else:
        session.output.raw(built.text())


def _prompt(
    session: Session, source: KernelSource, documents: Documents, binary: Path | None, form: Form
) -> Prompt:
    from rpl_core.interfaces.renderer import SectionOf
    from rpl_llm_unroll.prompt.build import build_prompt
    from rpl_llm_unroll.prompt.model import find_target, kernels_that_ran
    from rpl_optimize.interfaces.proposer import ProposalRequest

    models = documents.by_name()
    request = ProposalRequest(
        source,
        {name: json.loads(model.model_dump_json()) for name, model in models.items()},
        binary=binary,
        note=session.output.note,
        sections=tuple(
            SectionOf(c.plugin, c.value) for c in session.host.catalog.report_sections().contributions
        ),
        models=models,
    )
    if kernels_that_ran(request.documents, source.text) is False:
        session.output.note(
            f"warning: the run holds no kernel of {Path(source.path).name}: none of its figures is about this"
            " source. Next: profile the program that is built from it."
        )
    target = find_target(request)
    if isinstance(target, str):
        raise BadDataError(target, next_step="name one of them with --kernel")
    return build_prompt(request, target, form)


def _documents(
    session: Session, application: tuple[str, ...], given: PromptSettings
) -> tuple[Documents, tuple[str, ...]]:
    """The run's documents, and the command that it measured as far as it is known."""
    from rpl_analysis.documents.load import load_documents
    from rpl_core.process.runner import application_command

    if given.run is not None:
        command = application_command(application) if application else ()
        return load_documents(given.run, session.host.catalog.documents().contributions), command
    if not application:
        raise UsageError(
            "no command to profile is given", next_step='`rpl prompt kernel.hip "./app 100"`, or --from RUN'
        )
    command = application_command(application)
    return _profile(session, command, given), command


def _profile(session: Session, command: tuple[str, ...], given: PromptSettings) -> Documents:
    """Record and analyse as ``rpl profile`` does, into a run directory."""
    from rpl_core.cli.command_options import analysis_request
    from rpl_core.cli.profile import log_sink
    from rpl_core.pipeline import analyse_paths
    from rpl_core.profiling import ProfileRequest, choose_collector, record_application
    from rpl_core.run_directory.manifest import point_latest

    request = ProfileRequest(
        command=command,
        runs=given.runs,
        roofline=given.roofline,
        trace_dependencies=given.focus_critical,
        time_limit_s=given.time_limit_s,
        allow_dangerous_counters=False,
        output=given.output,
        runs_directory=given.runs_directory,
        analysis=analysis_request(session, given.flags, None, command="prompt"),
    )
    collector = choose_collector(session.host, given.collector, request.analysis.options)
    with session.output.progress("profile", total=None) as step:
        log = log_sink(session, given.debug)
        recorded = record_application(request, collector, session.host, log, step)
    if recorded.failure is not None:
        raise recorded.failure
    session.output.note(f"recorded in {recorded.directory}")
    if given.output is None:
        point_latest(recorded.directory)
    analysis = analysis_request(session, given.flags, recorded.directory, command="prompt")
    documents, _ = analyse_paths((recorded.directory,), analysis, session.host)
    return documents


def _program(command: tuple[str, ...]) -> Path | None:
    """The command's program, if it is a file: its device code is looked at, and nothing is run."""
    path = Path(command[0]) if command else None
    return path if path is not None and path.is_file() else None
