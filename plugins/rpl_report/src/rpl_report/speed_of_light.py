"""Speed of light: compute units by data type, and the memory hierarchy, of a kernel beside their ceilings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_analysis.text.figures import UNKNOWN, marked, percent
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.text.safety import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.roofline import KernelRooflineDoc, LevelPart, RooflineDocument, TypeWorkPart
    from rpl_core.contracts.common import MetricDoc

__all__ = ["SpeedOfLightSection"]

#: Kernels that the page draws, those with most time; ``rpl explain`` draws any.
_SHOWN = 3
_NAME_WIDTH = 60
#: From the cores to memory, with the hit rate of each cache.
_LEVELS = (("lds", "LDS", None), ("vl1d", "vL1D", "vl1d_hit_rate"), ("l2", "L2", "l2_hit_rate"))
_MEMORY = ("hbm", "fabric/HBM", None)
_PIPES = {"valu": "vector", "valu_packed": "packed vector", "mfma": "matrix"}
_COLUMNS = ("unit", "of ceiling", "", "rate", "ceiling", "hit rate", "per launch")
_BAR = 20
_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


class SpeedOfLightSection(ReportSection):
    """``>=`` marks a lower bound and ``~`` an estimate, as in all tables."""

    name = "speed-of-light"
    summary = "compute units by data type, LDS, caches and memory of each kernel beside their ceilings"
    title = "Speed of light"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        document = _document(request)
        if document is None:
            return ()
        return tuple(
            block for kernel in document.kernels[:_SHOWN] for block in _picture(kernel, document, request)
        )

    def text(self, request: SectionRequest) -> str | None:
        """The kernel with most time; `rpl explain` and the page have the others."""
        from rpl_report.sections import AnsweredSection
        from rpl_report.text.sections import section_text

        document = _document(request)
        drawn = (
            tuple(_picture(document.kernels[0], document, request)) if document and document.kernels else ()
        )
        return (
            section_text(AnsweredSection(self.name, self.title, blocks=drawn), request.width)
            if drawn
            else None
        )

    def html(self, request: SectionRequest) -> str | None:
        """Nothing of its own: the page draws the units as boxes, beside its table of kernels."""
        _ = request
        return ""

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        document = _document(request)
        found = [entry for entry in document.kernels if entry.name == kernel] if document else []
        return tuple(block for entry in found if document for block in _picture(entry, document, request))


def _document(request: SectionRequest) -> RooflineDocument | None:
    document: Any = request.documents.get("roofline")
    return document if document is not None and document.status == "available" else None


def _picture(
    kernel: KernelRooflineDoc, document: RooflineDocument, request: SectionRequest
) -> Iterator[Block]:
    rows = [*_arithmetic(kernel, document), *_hierarchy(kernel)]
    if rows:
        name = request.short_names.get(kernel.name) or shorten(kernel.name, _NAME_WIDTH)
        yield Paragraph(f"{name}:")
        yield Table(_COLUMNS, tuple(rows), right=("of ceiling", "rate", "ceiling", "per launch", "hit rate"))


def _arithmetic(kernel: KernelRooflineDoc, document: RooflineDocument) -> Iterator[tuple[str, ...]]:
    peaks = {(c.data_type, c.pipe): c.peak_gflops for c in document.ceilings.compute if c.origin == "spec"}
    if not kernel.types:
        known = kernel.flops.value is not None
        yield ("compute units", "0.0%" if known else UNKNOWN, "", "0" if known else UNKNOWN, "", "", "")
    for work in kernel.types:
        yield _unit(f"{work.data_type} {_PIPES.get(work.pipe, work.pipe)}", work, peaks)


def _unit(title: str, work: TypeWorkPart, peaks: dict[tuple[str, Any], float]) -> tuple[str, ...]:
    peak = peaks.get((work.data_type, work.pipe))
    share, drawn = _share(work.gops, peak)
    ceiling = UNKNOWN if peak is None else f"{peak:,.0f} GOP/s"
    return (title, share, drawn, _rate(work.gops, "GOP/s"), ceiling, "", _amount(work.operations, "OP"))


def _hierarchy(kernel: KernelRooflineDoc) -> Iterator[tuple[str, ...]]:
    levels = {level.level: level for level in kernel.levels}
    for name, title, cache in (*_LEVELS, _MEMORY):
        if name in levels and levels[name].bytes.value != 0:
            yield _level(title, levels[name], kernel.caches.get(cache or ""))


def _level(title: str, level: LevelPart, hits: MetricDoc | None) -> tuple[str, ...]:
    peak = level.spec_gbps or level.measured_gbps or level.published_gbps
    share, drawn = _share(level.achieved_gbps, peak)
    ceiling = UNKNOWN if peak is None else f"{peak:,.0f} GB/s"
    hit_rate = "" if hits is None else percent(hits.value)
    rate, moved = _rate(level.achieved_gbps, "GB/s"), _amount(level.bytes, "B")
    return title, share, drawn, rate, ceiling, hit_rate, moved


def _share(rate: MetricDoc, peak: float | None) -> tuple[str, str]:
    """In percent with its exactness, and as a bar; a share above its ceiling is no share, and says so."""
    if rate.value is None or not peak:
        return UNKNOWN, ""
    share = rate.value / peak
    mark = marked(1, rate.exactness)[:-1]
    if rate.upper is not None:
        full = min(round(share * _BAR), _BAR)
        return f"{100 * share:.1f} to {percent(rate.upper / peak)}", "#" * full + "." * (_BAR - full)
    if share > 1:
        return f"{mark}{percent(share)}", "above its ceiling"
    full = round(share * _BAR)
    return f"{mark}{percent(share)}", "#" * full + "." * (_BAR - full)


def _rate(metric: MetricDoc, unit: str) -> str:
    return (
        UNKNOWN if metric.value is None else f"{marked(metric.value, metric.exactness, metric.upper)} {unit}"
    )


def _amount(metric: MetricDoc, unit: str) -> str:
    """With the prefix that leaves few digits."""
    if metric.value is None:
        return UNKNOWN
    prefix, size = next(((p, s) for p, s in _PREFIXES if metric.value >= s), ("", 1.0))
    upper = None if metric.upper is None else metric.upper / size
    return f"{marked(metric.value / size, metric.exactness, upper)} {prefix}{unit}"
