"""The fields of ``profile.json`` that hold thread traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_analysis.facts import KERNEL_TIMES
from rpl_att.facts import ATT
from rpl_core.interfaces.document import DocumentContext, DocumentSection

if TYPE_CHECKING:
    from rpl_att.contract import AttPart

__all__ = ["TimedTraces", "UntimedTraces"]


class _ThreadTraces(DocumentSection):
    document = "profile"

    def model(self) -> type[AttPart]:
        from rpl_att.contract import AttPart

        return AttPart


class TimedTraces(_ThreadTraces):
    """``att`` of the application and of each kernel that the document knows."""

    name = "thread-traces"
    summary = "the thread trace of each kernel, and that of the longest-running one"
    field = "att"

    def draft(self, context: DocumentContext) -> AttPart | None:
        """That of the longest-running traced kernel; without times, that with most instructions."""
        timed = self.kernels(context)
        if timed:
            return next(iter(timed.values()))
        return max(_traces(context).values(), key=lambda part: part.instructions or 0, default=None)

    def kernels(self, context: DocumentContext) -> Mapping[str, AttPart]:
        traces = _traces(context)
        return {name: traces[name] for name in _timed(context) if name in traces}


class UntimedTraces(_ThreadTraces):
    """Traces of kernels that the timing runs do not know, or that nobody timed."""

    name = "untimed-thread-traces"
    summary = "thread traces of kernels without a time in the document"
    field = "untimed_thread_traces"

    def draft(self, context: DocumentContext) -> tuple[AttPart, ...] | None:
        timed = _timed(context)
        return tuple(part for name, part in _traces(context).items() if name not in timed) or None


def _traces(context: DocumentContext) -> Mapping[str, AttPart]:
    return context.facts.get(ATT) or {}


def _timed(context: DocumentContext) -> Mapping[str, object]:
    """Kernels with a time, the longest-running first."""
    return context.facts.get(KERNEL_TIMES) or {}
