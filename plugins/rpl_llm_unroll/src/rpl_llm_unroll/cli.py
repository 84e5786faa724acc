"""``rpl llm-optimize`` runs the closed loop with a language model; ``rpl prompt`` prints what it is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import DeviceOption, PluginOptionsCommand, declared, option, settled, takes
from rpl_core.cli.session import Session, session_of
from rpl_core.errors import BadDataError, UsageError
from rpl_core.values import frozen
from rpl_llm_unroll.settings import FORM, OPTIONS, LlmSettings
from rpl_optimize.cli.optimize_options import OptimizeSettings

if TYPE_CHECKING:
    from rpl_core.documents import Documents
    from rpl_llm_unroll.prompt.model import Prompt
    from rpl_llm_unroll.settings import Form
    from rpl_optimize.interfaces.transformation import KernelSource

# Options on the language model, and how they become options of the proposer.


@frozen
class FormOptions:
    """How much the prompt holds."""

    compact: bool = option(
        "--compact", is_flag=True, help="The shortest form: device, label, resources, kernel."
    )
    full_source: bool = option(
        "--full-source", is_flag=True, help="The whole source file instead of what is used."
    )

    def form(self) -> Form:
        """Raises ``UsageError`` for both at once."""
        if self.compact and self.full_source:
            raise UsageError(
                "--compact and --full-source exclude each other", next_step="leave one of them out"
            )
        if self.compact:
            return "compact"
        return "full-source" if self.full_source else "standard"


def split_flags(flags: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The flags of a language model, and all others."""
    own = {*declared(LlmSettings), *declared(FormOptions)}
    return {k: v for k, v in flags.items() if k in own}, {k: v for k, v in flags.items() if k not in own}


def proposer_options(session: Session, flags: Mapping[str, Any]) -> dict[str, str]:
    """Options for ``ProposalRequest``: flag, then configuration file; what is absent keeps its default."""
    view = session.host.relay.config
    options = {}
    for name, (field, one) in OPTIONS.items():
        value = flags[field]
        if value is None and one.setting is not None:
            value = view.get(one.setting)
        if value is not None and value is not False:
            options[name] = "true" if value is True else str(value)
    form = settled(FormOptions, session, flags).form()
    return options if form == "standard" else {**options, FORM: form}


# The closed loop with a language model as proposer.


@click.command(
    "llm-optimize",
    cls=PluginOptionsCommand,
    short_help="Let a language model rewrite kernels; accept what is proven.",
)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@takes(LlmSettings, FormOptions, OptimizeSettings)
@click.pass_context
def llm_optimize(context: click.Context, /, application: tuple[str, ...], **flags: Any) -> int:
    """Ask a language model for faster kernels: `rpl llm-optimize [SOURCE] "COMMAND" --model NAME`.

    As `rpl optimize`, with the proposer `llm`: each reply is checked as data, built, compared and measured.
    What is sent is said before; the key comes from OPENAI_API_KEY. Every exchange is recorded.

    \b
    rpl llm-optimize saxpy.hip "./saxpy 100" --model NAME --output-file out.bin:f32
    rpl llm-optimize saxpy.hip "./saxpy 100" --model NAME --replay-llm exchanges.jsonl
    """
    import os

    from rpl_core.cli.session import session_of
    from rpl_llm_unroll.proposers import require_ready
    from rpl_optimize.cli.optimize_command import run_optimize

    session = session_of(context)
    own, shared = split_flags(flags)
    options = proposer_options(session, own)
    if shared["resume"] is None:  # a resumed session has its options recorded
        require_ready(options, session.host.catalog.of, os.environ)
    return run_optimize(
        context, application, shared, proposer="llm", suffix="_llm_opt", proposer_options=options
    )


# ``rpl prompt``: what a language model would be told about a kernel; nothing is sent.

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

    session = session_of(context)
    form = settled(FormOptions, session, flags).form()
    given = settled(PromptSettings, session, flags, form=form, flags=flags)
    print_prompt(session, source, application, given)


# What ``rpl prompt`` does, behind its options.


def print_prompt(session: Session, source: Path, application: tuple[str, ...], given: PromptSettings) -> None:
    """Print it as text or JSON; what looks like a secret is noted, since nothing is sent here."""
    from rpl_llm_unroll.exchange import suspicious_lines
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
    from rpl_core.interfaces.section import SectionOf
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
    from rpl_core.process import application_command

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
    from rpl_core.run_directory import point_latest

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
