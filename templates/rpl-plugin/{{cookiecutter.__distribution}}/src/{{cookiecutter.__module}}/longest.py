"""The longest launch of each kernel; replace it by your figure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer, KernelFigure
from rpl_core.interfaces.document import DocumentContext, DocumentSection
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.model.metric import Exactness, Metric

FIELD = "{{ cookiecutter.__module }}"
#: The key under which other analyzers, rules and sections find the figure.
LONGEST = KernelFigure("longest_launch_ns")


class LongestAnalyzer(Analyzer):
    """Looks at timing runs only: counting stretches kernels."""

    name = "{{ cookiecutter.plugin_name }}"
    summary = "the longest launch of each kernel"
    provides = frozenset({LONGEST})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        longest: dict[str, int] = {}
        for trace in context.recording.timing_runs:
            for kernel, ns in zip(trace.dispatches.kernel, trace.dispatches.duration_ns(), strict=True):
                name = trace.kernels[kernel].name
                longest[name] = max(longest.get(name, 0), int(ns))
        origin, formula = context.recording.origin, "max(end - begin) over launches"
        figures = {
            name: Metric(float(ns), "ns", Exactness.EXACT, origin, formula=formula)
            for name, ns in longest.items()
        }
        return AnalysisOutcome({LONGEST: figures})


class LongestBlock(BaseModel):
    """Nanoseconds by kernel."""

    longest_ns: dict[str, float]


class LongestSection(DocumentSection):
    """Stands in `sections` of profile.json."""

    name = "{{ cookiecutter.plugin_name }}"
    summary = "the longest launch of each kernel"
    document = "profile"
    field = FIELD

    def model(self) -> type[BaseModel]:
        return LongestBlock

    def draft(self, context: DocumentContext) -> BaseModel | None:
        figures = context.facts.get(LONGEST) or {}
        known = {name: figure.value for name, figure in figures.items() if figure.value is not None}
        return LongestBlock(longest_ns=known) if known else None


class LongestReport(ReportSection):
    """The same for people: text, HTML and `rpl explain` draw it."""

    name = "{{ cookiecutter.plugin_name }}"
    summary = "the longest launch of each kernel"
    title = "Longest launches"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        rows = tuple((name, f"{ns:,.0f} ns") for name, ns in _longest(request).items())
        return (Table(("kernel", "longest"), rows, right=("longest",)),) if rows else ()

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        ns = _longest(request).get(kernel)
        return () if ns is None else (Paragraph(f"its longest launch took {ns:,.0f} ns"),)


def _longest(request: SectionRequest) -> dict[str, float]:
    sections: dict[str, Any] = getattr(request.documents["profile"], "sections", {})
    return dict(sections[FIELD]["longest_ns"]) if FIELD in sections else {}
