"""Everything that the page's template shows, from documents and timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from rpl_report.html.assets import Assets, load_assets
from rpl_report.html.colours import assign_colours
from rpl_report.html.findings import Finding, findings_of
from rpl_report.html.forecast_view import ForecastView, forecast_view
from rpl_report.html.head import Head, head_of
from rpl_report.html.kernel_details import KernelDetail, kernel_details
from rpl_report.html.kernel_rows import KernelTable, kernel_table
from rpl_report.html.names import kernel_names
from rpl_report.html.path_view import PathView, path_view
from rpl_report.html.provenance_view import ProvenanceView, provenance_view
from rpl_report.html.ranking import by_time
from rpl_report.html.roofline_view import RooflineView, roofline_view
from rpl_report.html.thread_trace_view import ThreadTraceView, thread_trace_views
from rpl_report.html.timeline_view import TimelineView, timeline_view

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_analysis.contracts.roofline import RooflineDocument
    from rpl_core.interfaces.renderer import RenderRequest

__all__ = ["Page", "page_of"]


@attrs.frozen
class Page:
    """One value per section, in the order of the page unless ``path_first``."""

    assets: Assets
    path_first: bool
    head: Head
    findings: tuple[Finding, ...]
    timeline: TimelineView
    path: PathView
    forecasts: ForecastView
    kernels: KernelTable
    roofline: RooflineView
    details: tuple[KernelDetail, ...]
    thread_traces: tuple[ThreadTraceView, ...]
    provenance: ProvenanceView


def page_of(request: RenderRequest) -> Page:
    """All sections."""
    documents = request.documents
    profile = cast("ProfileDocument", documents["profile"])
    dag = cast("DagDocument", documents["dag"])
    analysis = cast("AnalysisDocument", documents["analysis"])
    roofline = cast("RooflineDocument", documents["roofline"])
    ranked = [kernel.name for kernel in by_time(profile)]
    names, colours = kernel_names(ranked), assign_colours(ranked)
    return Page(
        assets=load_assets(),
        path_first=request.path_first,
        head=head_of(profile, dag, names),
        findings=findings_of(profile, dag, analysis, names),
        timeline=timeline_view(request.timeline, request.timeline_reason, names, colours),
        path=path_view(dag, names, colours),
        forecasts=forecast_view(dag, names, colours),
        kernels=kernel_table(profile, dag, analysis, names, colours),
        roofline=roofline_view(profile, roofline, names, colours),
        details=kernel_details(profile, dag, analysis, roofline, names, colours),
        thread_traces=thread_trace_views(profile, names),
        provenance=provenance_view(profile, documents),
    )
