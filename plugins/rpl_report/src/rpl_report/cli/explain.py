"""``rpl explain``: why a kernel got its bottleneck label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpl_core.cli.completion import completing
from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_core.cli.session import Session
    from rpl_core.errors import RplError
    from rpl_report.documents import LazyDocuments


def _kernels(context: click.Context) -> Iterable[str]:
    from rpl_report.options import kernels_of_run

    return kernels_of_run(context.params.get("directory") or session_of(context).latest_run)


@click.command("explain")
@click.argument("kernel", required=False, shell_complete=completing(_kernels))
@click.option(
    "--run",
    "directory",
    type=click.Path(path_type=Path),
    help="Run directory (default: the latest run).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def explain(context: click.Context, kernel: str | None, directory: Path | None, as_json: bool) -> None:
    """Say why KERNEL (a name or a part of one; default: the longest-running) got its label.

    \b
    rpl explain
    rpl explain vecCopy --run rpl-runs/latest
    """
    from rpl_analysis.text.names import shown_names
    from rpl_report.documents import stored_document, stored_documents

    session = session_of(context)
    directory = directory or session.latest_run
    contributions = session.host.catalog.documents().contributions
    analysis = stored_document(directory, "analysis", contributions)
    if not analysis.kernels:
        raise _nothing_to_explain(directory, stored_documents(directory, contributions).get("profile"))
    label = _find(analysis, kernel, directory)
    if as_json:
        session.output.json(label.model_dump(mode="json"))
        return
    shown = shown_names([entry.kernel for entry in analysis.kernels])[label.kernel]
    for line in _lines(session, stored_documents(directory, contributions), label, shown):
        session.output.line(line)


def _lines(session: Session, documents: LazyDocuments, label: KernelAnalysis, shown: str) -> Iterator[str]:
    from rpl_core.cli.output import text_width
    from rpl_core.interfaces.renderer import SectionOf
    from rpl_core.interfaces.section import SectionRequest
    from rpl_core.text.safety import readable
    from rpl_report.explain.label import gain_lines, label_lines
    from rpl_report.explain.resources import resource_lines
    from rpl_report.explain.roofline import roofline_lines
    from rpl_report.sections import explained_sections
    from rpl_report.text.sections import section_text

    yield shown
    if shown != label.kernel:
        yield f"full name   {readable(label.kernel)}"
    yield ""
    yield from label_lines(label)
    yield from gain_lines(documents.get("dag"), label.kernel)
    yield ""
    yield from resource_lines(documents.get("profile"), label.kernel)
    yield from roofline_lines(documents.get("roofline"), label.kernel)
    sections = [SectionOf(c.plugin, c.value) for c in session.host.catalog.report_sections().contributions]
    asked = SectionRequest(documents, text_width(), short_names={label.kernel: shown})
    for section in explained_sections(sections, asked, label.kernel):
        yield ""
        yield section_text(section, asked.width)


def _nothing_to_explain(directory: Path, profile: ProfileDocument | None) -> RplError:
    """Labels need times: what a recording without them holds instead."""
    from rpl_core.errors import MissingError
    from rpl_core.text.safety import readable
    from rpl_report.verdict import TRACED_COMMAND

    traced = [
        str(part["kernel"]) for part in getattr(profile, "untimed_thread_traces", ()) if part.get("kernel")
    ]
    if traced:
        return MissingError(
            f"{directory} holds thread traces alone, of {readable(traced[0], 80)}: labels need kernel times",
            next_step=f"see `rpl report {directory}` for the trace; {TRACED_COMMAND} records both",
        )
    return MissingError(f"the analysis in {directory} holds no kernel")


def _find(analysis: AnalysisDocument, name: str | None, directory: Path) -> KernelAnalysis:
    from rpl_analysis.text.distinct import named_few
    from rpl_analysis.text.names import names_like, shown_names
    from rpl_core.errors import MissingError, UsageError
    from rpl_core.text.alike import did_you_mean

    if name is None:
        return analysis.kernels[0]
    meant = set(names_like(name, [entry.kernel for entry in analysis.kernels]))
    matching = [entry for entry in analysis.kernels if entry.kernel in meant]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        names = [entry.kernel for entry in analysis.kernels]
        hint = did_you_mean(name, (*shown_names(names).values(), *names))
        raise MissingError(f"no kernel matches {name!r}{hint}", next_step=f"see `rpl report {directory}`")
    called = shown_names([entry.kernel for entry in analysis.kernels])
    shown = named_few([called[entry.kernel] for entry in matching])
    raise UsageError(f"{len(matching)} kernels match {name!r}: {shown}", next_step="give more of the name")
