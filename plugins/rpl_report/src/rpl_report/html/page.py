"""The page: the renderer ``html``, its template and assets, and everything in its head."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

from markupsafe import Markup

from rpl_analysis.options import NAMES
from rpl_analysis.text import between, one_unit
from rpl_core.interfaces.section import RenderRequest, SectionRequest
from rpl_core.text import counted, readable
from rpl_core.values import frozen
from rpl_report.documents import AnsweredSection, claims_of, device_names, html_sections, report_documents
from rpl_report.html.figures import assign_colours, by_time, count, duration, factor, kernel_names, share
from rpl_report.html.kernels import KernelDetail, KernelTable, kernel_details, kernel_table
from rpl_report.html.light_view import LightView, light_view
from rpl_report.html.path_view import ForecastView, PathView, forecast_view, path_view
from rpl_report.html.roofline import RooflineView, roofline_view
from rpl_report.html.timeline_view import TimelineView, timeline_view
from rpl_report.verdict import Entry, Verdict, verdict_of

if TYPE_CHECKING:
    from jinja2 import Environment
    from pydantic import BaseModel

    from rpl_analysis.contracts.dag import DagDocument, DominantWorkPart
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_core.contracts.common import DiagnosticDoc
    from rpl_report.html.figures import KernelNames

#: Before anything is drawn: what only works with a script may take its room.
_EARLY_SCRIPT = 'document.documentElement.className="js"'


@frozen
class Assets:
    """``early_script`` runs in the head; ``licence`` is that of the plotting library inside the script."""

    early_script: Markup
    script: Markup
    style: Markup
    licence: str
    policy: str


@frozen
class Page:
    """One value per section, in the order of the page unless ``path_first``."""

    assets: Assets
    path_first: bool
    without_work: bool  # nothing but sections of plugins, such as a thread trace alone
    head: Head
    verdict: Verdict
    targets: tuple[str, ...]  # of the entries of the verdict
    timeline: TimelineView
    path: PathView
    forecasts: ForecastView
    kernels: KernelTable
    light: LightView
    roofline: RooflineView
    details: tuple[KernelDetail, ...]
    sections: tuple[AnsweredSection, ...]  # of plugins
    provenance: ProvenanceView


def page_of(request: RenderRequest) -> Page:
    """All sections."""
    documents = report_documents(request.documents)
    profile, dag, analysis, roofline = (
        documents.profile,
        documents.dag,
        documents.analysis,
        documents.roofline,
    )
    ranked = [kernel.name for kernel in by_time(profile)]
    names, colours = (
        kernel_names(ranked, documents.shown_names(request.options[NAMES])),
        assign_colours(ranked),
    )
    asked = SectionRequest(
        documents=MappingProxyType(request.documents),
        width=request.width,
        short_names={name: names.short(name) for name in names.apart},
        anchors=MappingProxyType(names.ids),
    )
    with one_unit(*documents.longest_ns()):  # as in the text report
        sections = tuple(html_sections(request.sections, asked))
        verdict = verdict_of(documents, names.work, claims_of(request.sections, asked))
    without_work = not profile.kernels and bool(sections)
    return Page(
        assets=load_assets(),
        path_first=request.path_first,
        without_work=without_work,
        head=head_of(profile, dag, names, request),
        verdict=verdict,
        targets=tuple(_target(entry, names, without_work=without_work) for entry in verdict.entries),
        timeline=timeline_view(request.timeline, request.timeline_reason, names, colours),
        path=path_view(dag, names, colours, documents.profile.stability.runs or 1),
        forecasts=forecast_view(dag, names, colours),
        kernels=kernel_table(profile, dag, analysis, names, colours),
        light=light_view(profile, roofline, names, colours),
        roofline=roofline_view(profile, roofline, names, colours),
        details=kernel_details(profile, dag, analysis, roofline, names, colours),
        sections=sections,
        provenance=provenance_view(profile, request.documents),
    )


def _target(entry: Entry, names: KernelNames, *, without_work: bool) -> str:
    """The place that shows more. A page of thread traces alone has nothing but sections of plugins."""
    if without_work and entry.section not in ("thread-traces", "section-ranks"):
        return "#provenance"
    of_kernel = names.of(entry.subject) if entry.section == "kernels" else None
    return f"#{of_kernel or entry.section}"


@cache
def load_assets() -> Assets:
    """What ``web/`` was built into; the policy names both by hash, so nothing else is ever executed."""
    folder = files("rpl_report.html") / "assets"
    script, style = (
        (folder / name).read_text(encoding="utf-8").strip() for name in ("report.js", "report.css")
    )
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(_EARLY_SCRIPT)}' '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return Assets(
        early_script=Markup(_EARLY_SCRIPT),  # noqa: S704 - a constant
        script=Markup(script),  # noqa: S704 - built from web/, checked by the tests
        style=Markup(style),  # noqa: S704
        licence=(folder / "LICENSE.uPlot.txt").read_text(encoding="utf-8").strip(),
        policy=policy,
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


# The renderer ``html``: documents and timeline in, one self-contained page out.


@cache
def page_environment(package: str | None = None) -> Environment:
    """Templates of ``package`` and those of this page, which they may include.

    Every value is escaped; a name that a template misspells is an error.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    from rpl_core.text import readable
    from rpl_report.html import figures
    from rpl_report.html.figures import label_text
    from rpl_report.html.path_view import dependency_name

    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(each, "templates") for each in (package, "rpl_report.html") if each]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: getattr(figures, name) for name in figures.__all__})
    environment.filters |= {"readable": readable, "label": label_text, "dependency": dependency_name}
    environment.filters["px"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    return environment


# The head of the page: what was profiled, how far to trust it, the first figures, where all come from.


_ORIGINS = {
    "synthetic": "A test or demonstration wrote this recording. Nothing here is a measurement.",
    "modelled": "Computed by an emulator or a formula, not measured on hardware.",
}
#: Programs whose own name says little (chosen).
_INTERPRETERS = ("python", "bash", "sh", "perl", "julia", "mpirun", "srun", "torchrun")
#: How the product of an architecture begins that several have (rpl_core.devices.common_model).
_SEVERAL_PRODUCTS = "one of "


@frozen
class Figure:
    """One headline figure with the sentence that says what it is."""

    label: str
    value: str
    note: str


@frozen
class Head:
    title: str
    facts: tuple[str, ...]
    origin: str | None  # set when it is not "measured"
    origin_text: str | None
    incomplete: str | None
    figures: tuple[Figure, ...]


def head_of(profile: ProfileDocument, dag: DagDocument, names: KernelNames, request: RenderRequest) -> Head:
    what = _traced_kernels(profile, names) or _application(profile, request)
    title = f"{what} on {_device(profile) or 'an unknown device'}"
    origin = profile.provenance.origin if profile.provenance else None
    # The command and the time, which tell two reports of one program apart.
    facts = [f"command: {shlex.join(request.command)}"] if request.command else []
    facts += [request.recorded] if request.recorded else []
    return Head(
        title=readable(title, 120),
        facts=(*tuple(readable(fact, 160) for fact in facts), *_run_facts(profile)),
        origin=origin if origin != "measured" else None,
        origin_text=_ORIGINS.get(origin or ""),
        incomplete=readable(profile.incomplete, 400) if profile.incomplete else None,
        figures=tuple(_figures(profile, dag, names)),
    )


def _application(profile: ProfileDocument, request: RenderRequest) -> str:
    """The program that ran; without a command the files that hold it."""
    if request.command:
        # Its name; of what an interpreter runs the script, or the option that names it.
        command = request.command
        first = PurePath(command[0]).name or "a program"
        if not first.startswith(_INTERPRETERS) or len(command) == 1:
            return first
        options = [word for word in command[1:3] if word in ("-m", "-c")]
        if options:
            return " ".join((first, *command[1:3]))
        script = next((word for word in command[1:] if not word.startswith("-")), None)
        return PurePath(script).name if script else first
    if request.files:
        return request.files
    artefacts = profile.provenance.artefacts if profile.provenance else ()
    names = list(dict.fromkeys(PurePath(artefact.path).name for artefact in artefacts))
    return f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}" if names else "A recording"


def _traced_kernels(profile: ProfileDocument, shown: KernelNames) -> str:
    """What a recording without dispatches is of, if its thread traces name their kernels."""
    names = [str(part["kernel"]) for part in profile.untimed_thread_traces if part.get("kernel")]
    if not names or profile.kernels:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Thread trace of {shown.short(names[0])}{more}"


def _device(profile: ProfileDocument) -> str | None:
    """Its product, else its family: an architecture of several products, or what a thread trace says."""
    known = device_names(profile)
    if known == profile.gpu.product and known and known.startswith(_SEVERAL_PRODUCTS):
        return f"a {profile.gpu.architecture} GPU"
    return known


def _run_facts(profile: ProfileDocument) -> list[str]:
    gpu, facts = profile.gpu, []
    if profile.range:
        facts.append(readable(f"only the work of the ranges {profile.range!r}", 160))
    if gpu.architecture:
        facts.append(readable(gpu.architecture, 160))
    if gpu.compute_units:
        facts.append(f"{gpu.compute_units} compute units")
    if gpu.clock_mhz:
        facts.append(f"{gpu.clock_mhz:.10g} MHz")
    if gpu.partition:
        facts.append(readable(gpu.partition, 160))
    if profile.launches:
        number = len(profile.kernels)
        kernels = counted(number, "kernel", shown=count(number))
        dispatches = counted(profile.launches, "dispatch", "dispatches", shown=count(profile.launches))
        facts.append(f"{dispatches} of {kernels} per run")
    if profile.stability.runs:
        runs = profile.stability.runs
        facts.append("one timing run" if runs == 1 else f"{runs} timing runs")
    return facts


def _figures(profile: ProfileDocument, dag: DagDocument, names: KernelNames) -> list[Figure]:
    figures = [_runtime(profile)]
    if dag.status == "available":
        path = dag.critical_path_ns or 0
        of_makespan = share(path / dag.makespan_ns) if dag.makespan_ns else "-"
        figures.append(Figure("Makespan", duration(dag.makespan_ns), "first begin to last end on the GPU"))
        figures.append(
            Figure("Critical path", duration(path), f"{of_makespan} of the makespan is on it as work")
        )
        domain = max(dag.clock_domains, key=lambda part: part.critical_path_ns, default=None)
        if domain is not None and domain.makespan_ns:
            figures.append(
                Figure(
                    "GPU idle time",
                    share(domain.idle_ns / domain.makespan_ns),
                    f"{duration(domain.idle_ns)} in which nothing recorded ran",
                )
            )
        if dag.dominant_work:
            figures.append(_ceiling(dag, dag.dominant_work, names))
    return figures


def _ceiling(dag: DagDocument, work: DominantWorkPart, names: KernelNames) -> Figure:
    """What the application gains at most from the work that dominates the path."""
    least, most = work.application_ceiling, work.application_ceiling_at_most
    value = factor(least)
    if not dag.order_known:
        value = between(value, factor(most))
    elif dag.sync_info == "none":
        value = f"at most {value}"
    doubt = "; no API calls are recorded: every gap stays as it was" if dag.sync_info == "none" else ""
    if not dag.order_known:
        doubt = "; which streams waited for which is not recorded"
    note = f"the whole application, if {names.work(work.name, work.kind)} cost nothing{doubt}"
    return Figure("Speed-up ceiling", value, note)


def _runtime(profile: ProfileDocument) -> Figure:
    if profile.runtime_ms is None:
        return Figure("Kernel time", "unknown", readable(profile.runtime_reason or "", 160))
    if not profile.launches:  # a time without a GPU trace is none of kernels
        return Figure(
            "Process time", duration(profile.runtime_ms * 1e6), readable(profile.runtime_source or "", 160)
        )
    note = "sum over all dispatches"
    if profile.runtime_exactness == "estimate" and profile.runtime_range_ms:
        low, high = profile.runtime_range_ms
        note = f"estimate from counter passes: {between(duration(low * 1e6), duration(high * 1e6))}"
    elif profile.stability.cv is not None:
        note += f", mean of runs, CV {share(profile.stability.cv, 2)} ({profile.stability.classification})"
    return Figure("Kernel time", duration(profile.runtime_ms * 1e6), note)


#: Rows of each table (chosen); the documents hold all.
_ROWS_SHOWN = 200


@frozen
class ArtefactRow:
    path: str
    role: str
    format: str
    origin: str
    sha256: str


@frozen
class DiagnosticRow:
    severity: str
    code: str
    fact: str
    cause: str
    remedy: str
    where: str


@frozen
class ProvenanceView:
    facts: tuple[tuple[str, str], ...]
    artefacts: tuple[ArtefactRow, ...]
    artefacts_left_out: int
    diagnostics: tuple[DiagnosticRow, ...]
    diagnostics_left_out: int
    warnings: int


def provenance_view(profile: ProfileDocument, documents: Mapping[str, BaseModel]) -> ProvenanceView:
    provenance, diagnostics = profile.provenance, profile.diagnostics
    artefacts = provenance.artefacts if provenance else ()
    return ProvenanceView(
        facts=tuple(_provenance_facts(profile, documents)),
        artefacts=tuple(
            ArtefactRow(
                path=readable(artefact.path, 300),
                role=artefact.role,
                format=readable(artefact.format, 80),
                origin=artefact.origin,
                sha256=readable(artefact.sha256 or "not computed", 64),
            )
            for artefact in artefacts[:_ROWS_SHOWN]
        ),
        artefacts_left_out=max(0, len(artefacts) - _ROWS_SHOWN),
        diagnostics=tuple(_diagnostic(entry) for entry in diagnostics[:_ROWS_SHOWN]),
        diagnostics_left_out=max(0, len(diagnostics) - _ROWS_SHOWN),
        warnings=sum(1 for entry in diagnostics if entry.severity != "info"),
    )


def _provenance_facts(profile: ProfileDocument, documents: Mapping[str, BaseModel]) -> list[tuple[str, str]]:
    provenance = profile.provenance
    facts = [
        ("Documents", ", ".join(f"{name}.json {_version(doc)}" for name, doc in sorted(documents.items())))
    ]
    facts.append(("Time from", readable(profile.runtime_source or profile.runtime_reason or "unknown", 300)))
    if provenance is None:
        return facts
    facts.append(("Computed by", f"{provenance.tool} {provenance.tool_version or ''}".strip()))
    facts.append(("Origin", provenance.origin or "unknown"))
    device = provenance.device or "none"
    facts.append(
        ("Device model", f"{device} ({provenance.device_source})" if provenance.device_source else device)
    )
    if provenance.overrides:
        facts.append(("Overridden", ", ".join(provenance.overrides)))
    facts.append(("Plugins", ", ".join(provenance.plugins) or "none"))
    facts += [("Remark", remark) for remark in provenance.remarks]
    return [(label, readable(text, 600)) for label, text in facts]


def _version(document: BaseModel) -> str:
    return str(getattr(document, "schema_version", "?"))


def _diagnostic(entry: DiagnosticDoc) -> DiagnosticRow:
    return DiagnosticRow(
        severity=entry.severity,
        code=readable(entry.code, 80),
        fact=readable(entry.fact, 600),
        cause=readable(entry.cause or "", 600),
        remedy=readable(entry.remedy or "", 600),
        where=readable(entry.where or "", 300),
    )
