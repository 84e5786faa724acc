"""The text report: what limits the application, then one line per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rpl_core.interfaces.renderer import Renderer, RenderRequest
from rpl_core.text.figures import UNKNOWN, duration_ns, marked, milliseconds, number, percent
from rpl_core.text.fit import fit_table, wrap_lines
from rpl_core.text.safety import printable
from rpl_report.text.corrections import corrections_section
from rpl_report.text.path import path_section
from rpl_report.text.thread_traces import thread_trace_section

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
    from rpl_analysis.contracts.roofline import RooflineDocument, RooflinePart

#: Kernels shown by default; the documents hold all.
SHOWN_KERNELS = 20
_NAME_WIDTH = 48
#: Columns that go where the width does not allow all of them, the least important first (and before these,
#: those that hold nothing).
_DROPPABLE = (4, 6, 1, 9, 5, 8, 7, 3)


class TextRenderer(Renderer):
    name = "text"
    summary = "aligned tables for a terminal or a log"
    suffix = ".txt"

    def render(self, request: RenderRequest) -> str:
        profile = cast("ProfileDocument", request.documents["profile"])
        roofline = cast("RooflineDocument", request.documents["roofline"])
        dag = cast("DagDocument", request.documents["dag"])
        head, path = _head(profile), path_section(dag, request.width)
        sections = [
            *((path, head) if request.path_first else (head, path)),
            _kernels(profile, cast("AnalysisDocument", request.documents["analysis"]), request.width),
            thread_trace_section(profile),
            corrections_section(roofline, request.width),
            _roofline_note(roofline),
        ]
        text = "\n\n".join(section for section in sections if section) + "\n"
        return wrap_lines(text, request.width)


def _head(profile: ProfileDocument) -> str:
    gpu, stability = profile.gpu, profile.stability
    device = gpu.product or gpu.architecture or f"unknown ({gpu.reason or 'not recorded'})"
    lines = [("device", device), ("runtime", _runtime(profile))]
    if profile.launches:
        lines.append(("launches", _launches(profile.launches, len(profile.kernels))))
    if stability.runs:
        spread = (
            f"CV {percent(stability.cv, 2)} ({stability.classification})"
            if stability.cv is not None
            else "one run"
        )
        lines.append(("stability", f"{stability.runs} runs, {spread}" if stability.runs > 1 else spread))
    if profile.provenance and profile.provenance.origin != "measured":
        lines.append(("origin", f"{profile.provenance.origin}: not a measurement of hardware"))
    if profile.incomplete:
        lines.append(("incomplete", profile.incomplete))
    return "\n".join(f"{label:<12}{printable(text)}" for label, text in lines)


def _launches(launches: float, kernels: int) -> str:
    """Mean per run; a fraction shows that the runs differ."""
    noun = "kernel" if kernels == 1 else "different kernels"
    return f"{launches:,.10g} of {kernels} {noun} per run"


def _runtime(profile: ProfileDocument) -> str:
    if profile.runtime_ms is None:
        return f"unknown: {profile.runtime_reason}"
    text = milliseconds(profile.runtime_ms)
    if profile.runtime_exactness == "estimate" and profile.runtime_range_ms:
        low, high = profile.runtime_range_ms
        text += f" (estimate, {low:.4g} to {high:.4g} ms over the counter passes)"
    return f"{text}  [{profile.runtime_source}]"


def _kernels(profile: ProfileDocument, analysis: AnalysisDocument, width: int) -> str:
    if not profile.kernels:
        return ""
    labels = {entry.kernel: entry for entry in analysis.kernels}
    rows = []
    for kernel in profile.kernels[:SHOWN_KERNELS]:
        found = labels.get(kernel.name)
        label = f"{found.bottleneck} ({found.confidence})" if found else UNKNOWN
        rows.append((*_figures(kernel), label))
    columns = (
        "kernel",
        "calls",
        "time",
        "share",
        "median",
        "occup.",
        "limiter",
        "crit.",
        "GB/s",
        "FLOP/B",
        "bottleneck",
    )
    empty = [i for i in _DROPPABLE if all(row[i] == UNKNOWN for row in rows)]
    table, lost = fit_table(
        columns,
        rows,
        width,
        right=(1, 2, 3, 4, 5, 7, 8, 9),
        droppable=(*empty, *(i for i in _DROPPABLE if i not in empty)),
        longest_name=_NAME_WIDTH,
    )
    lost = tuple(name for name in lost if columns.index(name) not in empty)
    rest = len(profile.kernels) - len(rows)
    notes = [f"({rest} more kernels in profile.json)"] if rest > 0 else []
    notes += [f"(no room for {', '.join(lost)}: see profile.json, or use a wider terminal)"] if lost else []
    return "\n".join((table, *notes))


def _figures(kernel: KernelProfile) -> tuple[str, ...]:
    roofline = kernel.roofline
    return (
        kernel.name,
        f"{kernel.launches:,.10g}",
        milliseconds(kernel.runtime_ms),
        percent(kernel.time_share),
        duration_ns(kernel.median_ns),
        percent(kernel.occupancy.theoretical, 0),
        kernel.occupancy.limiter or UNKNOWN,
        percent(kernel.criticality_weight),
        _bandwidth(roofline) if roofline else UNKNOWN,
        marked(roofline.operational_intensity, roofline.exactness) if roofline else UNKNOWN,
    )


def _bandwidth(roofline: RooflinePart) -> str:
    """GB/s; a rate above the memory ceiling is marked, since it is no HBM bandwidth."""
    above = "hbm" in roofline.exceeds_ceiling
    return number(roofline.achieved_gbps) + (" (above HBM)" if above else "")


def _roofline_note(roofline: RooflineDocument) -> str:
    if roofline.status == "available":
        return ""
    return f"roofline: {roofline.status.replace('_', ' ')}. {printable(roofline.reason or '')}"
