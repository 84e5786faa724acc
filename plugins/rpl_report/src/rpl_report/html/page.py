"""Everything that the page's template shows, from documents and timeline."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from markupsafe import Markup

from rpl_analysis.options import NAMES
from rpl_analysis.text.figures import one_unit
from rpl_core.interfaces.renderer import RenderRequest
from rpl_core.interfaces.section import SectionRequest
from rpl_core.values import frozen
from rpl_report.documents import report_documents
from rpl_report.html.head import Head, ProvenanceView, head_of, provenance_view
from rpl_report.html.kernel_details import KernelDetail, kernel_details
from rpl_report.html.kernel_identity import assign_colours, by_time, kernel_names
from rpl_report.html.kernel_rows import KernelTable, kernel_table
from rpl_report.html.light_view import LightView, light_view
from rpl_report.html.path_view import ForecastView, PathView, forecast_view, path_view
from rpl_report.html.roofline.view import RooflineView, roofline_view
from rpl_report.html.timeline_view import TimelineView, timeline_view
from rpl_report.sections import AnsweredSection, claims_of, html_sections
from rpl_report.verdict import Entry, Verdict, verdict_of

if TYPE_CHECKING:
    from rpl_report.html.kernel_identity import KernelNames

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
    asked = _section_request(request, names)
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


def _section_request(request: RenderRequest, names: KernelNames) -> SectionRequest:
    return SectionRequest(
        documents=MappingProxyType(request.documents),
        width=request.width,
        short_names={name: names.short(name) for name in names.apart},
        anchors=MappingProxyType(names.ids),
    )


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
