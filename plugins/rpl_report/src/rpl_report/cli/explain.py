"""``rpl explain``: why a kernel got its bottleneck label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpl_analysis.text import UNKNOWN, faster_application, number, occupancy_share, percent
from rpl_core.cli.command_options import completing
from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rpl_analysis.contracts.analysis import (
        AnalysisDocument,
        ConditionEvidence,
        KernelAnalysis,
        RuleEvidence,
    )
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import OccupancyPart, ProfileDocument, ResourcesPart
    from rpl_analysis.contracts.roofline import CeilingsPart, KernelRooflineDoc, RooflineDocument
    from rpl_core.cli.session import Session
    from rpl_core.errors import RplError
    from rpl_core.model.metric import Metric
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
    from rpl_analysis.text import shown_names
    from rpl_report.documents import stored_document, stored_documents

    session = session_of(context)
    directory = directory or session.latest_run
    contributions = session.host.catalog.documents().contributions
    analysis = stored_document(directory, "analysis", contributions)
    if not analysis.kernels:
        raise _nothing_to_explain(directory, stored_documents(directory, contributions).get("profile"))
    label = _find(analysis, kernel, directory)
    if as_json:
        from pydantic_core import to_jsonable_python

        session.output.json(to_jsonable_python(label))
        return
    shown = shown_names([entry.kernel for entry in analysis.kernels])[label.kernel]
    for line in _lines(session, stored_documents(directory, contributions), label, shown):
        session.output.line(line)


def _lines(session: Session, documents: LazyDocuments, label: KernelAnalysis, shown: str) -> Iterator[str]:
    from rpl_core.cli.output import text_width
    from rpl_core.interfaces.section import SectionOf, SectionRequest
    from rpl_core.text import readable
    from rpl_report.documents import explained_sections
    from rpl_report.text import section_text

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
    from rpl_core.text import readable
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
    from rpl_analysis.text import named_few, names_like, shown_names
    from rpl_core.errors import MissingError, UsageError
    from rpl_core.text import did_you_mean

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


def label_lines(label: KernelAnalysis) -> Iterator[str]:
    """The label, the rules that gave it and those that nearly did, and what stayed unknown."""
    yield f"label       {label.bottleneck} (confidence: {label.confidence})"
    yield f"why         {label.reason}"
    yield f"headroom    {_headroom(label)}"
    for title, rules in (("evidence", label.evidence), ("near misses", label.near_misses)):
        for i, rule in enumerate(rules):
            yield ""
            decides = ", decides" if title == "evidence" and i == 0 else ""
            yield f"{title:<12}{rule.rule} -> {rule.label}{decides}"
            yield from _rule_lines(rule)
    if label.unknown:
        yield ""
    for line in label.unknown:
        yield f"unknown     {line}"
    if label.remedy:
        yield f"remedy      {label.remedy.replace('{command}', 'COMMAND')}"


def gain_lines(document: DagDocument | None, kernel: str) -> Iterator[str]:
    """What the application gains from a faster one; both ends where the order of streams is unknown."""
    forecasts = () if document is None else document.forecasts
    most = "at most " if document and document.sync_info == "none" and document.order_known else ""
    forecast = next((entry for entry in forecasts if (entry.name, entry.kind) == (kernel, "kernel")), None)
    for answer in () if forecast is None else forecast.speedups:
        if answer.speedup in (2.0, None):
            factor = "twice as fast" if answer.speedup else "at no cost"
            told = f"it makes the application {most}{faster_application(answer)} as fast"
            if answer.application_ns <= 0:
                told = "nothing would be left of the application's recorded time"
            yield f"{'gain':<12}{factor}, {told}"


def _headroom(label: KernelAnalysis) -> str:
    if label.headroom_fraction is None:
        return f"unknown: {label.headroom_reason or 'nothing was recorded that tells'}"
    return f"{label.headroom_fraction:.1%}  [{label.headroom_source}]"


def _rule_lines(rule: RuleEvidence) -> Iterator[str]:
    """The rule in words, then each condition with its figure, its exactness and where it comes from."""
    yield f"{'':<12}{rule.explanation}"
    rows = [
        (
            condition.quantity,
            _value(condition),
            f"{condition.comparison} {condition.threshold:.0%}",
            {True: "holds", False: "fails", None: "unknown"}[condition.holds],
            f"threshold: {condition.source}",
        )
        for condition in rule.conditions
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for (name, value, limit, verdict, source), condition in zip(rows, rule.conditions, strict=True):
        yield (
            f"{'':<14}{name:<{widths[0]}}  {value:>{widths[1]}} {limit:<{widths[2]}}  {verdict:<{widths[3]}}"
            f"  [{source}]"
        )
        if condition.formula is not None:
            yield f"{'':<16}= {condition.formula}"


def _value(condition: ConditionEvidence) -> str:
    """In percent; an inexact figure says so, one near its threshold shows the digits that tell them apart."""
    if condition.value is None:
        return "unknown"
    near = abs(condition.value - condition.threshold) < 0.001
    text = f"{condition.value:.{3 if near else 1}%}"
    if condition.upper is not None:
        return f"{text} to {condition.upper:.1%}"
    return text if condition.exactness in ("exact", None) else f"{text} ({condition.exactness})"


def resource_lines(document: ProfileDocument | None, kernel: str) -> Iterator[str]:
    """Lines about ``kernel``; nothing where the profile does not hold it."""
    profiled = None if document is None else next((k for k in document.kernels if k.name == kernel), None)
    if profiled is None:
        return
    yield f"resources   {_resources(profiled.resources)}"
    yield f"occupancy   {_occupancy(profiled.occupancy)}"
    yield ""


def _resources(resources: ResourcesPart) -> str:
    vgprs = _count(resources.vgpr_per_thread)
    if resources.accum_vgpr:
        vgprs += f" ({_count(resources.arch_vgpr)} + {resources.accum_vgpr} AGPR)"
    return (
        f"VGPR {vgprs}, SGPR {_count(resources.sgpr_per_wave)}, "
        f"LDS {_count(resources.lds_bytes)} B per workgroup, "
        f"scratch {_count(resources.scratch_bytes)} B per work-item"
    )


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _occupancy(occupancy: OccupancyPart) -> str:
    share = occupancy_share(occupancy)
    if occupancy.theoretical is None:
        return f"{share} ({occupancy.reason})"
    waves = f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} waves per SIMD"
    more = f"; one more with {occupancy.next_threshold}" if occupancy.next_threshold else ""
    return f"{share} in theory, {waves}, limited by {occupancy.limiter}{more}"


_LEVELS = {"hbm": "HBM/fabric", "l2": "L2", "vl1d": "vL1D", "lds": "LDS"}


def roofline_lines(document: RooflineDocument | None, kernel: str) -> Iterator[str]:
    """Lines about ``kernel``; one line with the reason where there is no roofline."""
    if document is None:
        yield "roofline    unknown: there is no roofline.json"
        return
    roofline = next((entry for entry in document.kernels if entry.name == kernel), None)
    if roofline is None or document.status != "available":
        yield f"roofline    {document.status.replace('_', ' ')}: {document.reason or 'no counters for it'}"
        return
    other = roofline.measured.origin or "measured"
    roof = "spec" if roofline.spec.peak_gbps is not None else other
    bound = roofline.bound or "undecided"
    yield f"roofline    {_figure(roofline.position, percent)} of what is attainable; bound: {bound}"
    yield f"{'':<12}{roofline.bound_reason} ({roof} ceilings)"
    if roof == "spec" and roofline.measured.position.value is not None:
        yield f"{'':<12}{_figure(roofline.measured.position, percent)} of the {other} ceilings"
    if roofline.exceeds_ceiling:
        yield f"{'':<12}ABOVE A CEILING, so not what it seems: {', '.join(roofline.exceeds_ceiling)}"
    yield from _work(roofline, document.ceilings)
    yield from _models(roofline)
    yield from _corrections(roofline)
    for level in roofline.levels:
        known = level.achieved_gbps.value is not None
        peak = f" of {number(level.spec_gbps)}" if known and level.spec_gbps is not None else ""
        unit = f"{peak} GB/s" if known else ""
        yield f"{'':<12}{_LEVELS.get(level.level, level.level):<20}{_figure(level.achieved_gbps)}{unit}"
    for name, metric in roofline.caches.items():
        yield f"{'':<12}{name:<20}{_figure(metric, percent)}"
        yield from _how(metric)


def _work(roofline: KernelRooflineDoc, ceilings: CeilingsPart) -> Iterator[str]:
    peaks = {(c.data_type, c.pipe): c.peak_gflops for c in ceilings.compute if c.origin == "spec"}
    for work in roofline.types:
        dominant = (work.data_type, work.pipe) == (roofline.dominant_type, roofline.dominant_pipe)
        chosen = ", picks the roof" if dominant else ""
        title = f"{work.data_type} {work.pipe}"
        peak = peaks.get((work.data_type, work.pipe))
        known = work.gops.value is not None
        of_peak = f" of {number(peak)}" if known and peak is not None else ""
        unit = f"{of_peak} GOP/s" if known else ""
        yield f"{'':<12}{title:<20}{_figure(work.gops)}{unit}{chosen}"


def _corrections(roofline: KernelRooflineDoc) -> Iterator[str]:
    counted = [metric for metric in roofline.corrections.values() if metric.value is not None]
    if roofline.flops.value and any(metric.value != roofline.flops.value for metric in counted):
        for name, metric in roofline.corrections.items():
            yield f"{'':<12}{'FLOPs, ' + name:<20}{_figure(metric)}"
            yield from _how(metric)


def _models(roofline: KernelRooflineDoc) -> Iterator[str]:
    """The FLOPs of one launch as both models count them."""
    for name, metric in (("per_op", roofline.models.per_op), ("valu_width", roofline.models.valu_width)):
        used = ", used" if name == roofline.flop_model else ""
        yield f"{'':<12}{'FLOPs, ' + name:<20}{_figure(metric)}{used}"
    if roofline.models.fallback:
        yield f"{'':<14}{roofline.models.fallback}"


def _figure(metric: Metric, form: Callable[[float | None], str] = number) -> str:
    """The value with its exactness unless exact; the reason where it is unknown."""
    if metric.value is None:
        return f"unknown ({metric.reason})"
    if metric.upper is not None:
        return f"{form(metric.value)} to {form(metric.upper)}"
    return form(metric.value) + ("" if metric.exactness in ("exact", None) else f" ({metric.exactness})")


def _how(metric: Metric) -> Iterator[str]:
    if metric.value is not None:
        source = f"  [{metric.source}]" if metric.source else ""
        formula = f"= {metric.formula}{source}" if metric.formula else None
        yield from (f"{'':<14}{text}" for text in (formula, metric.note) if text)
