"""What to do next for one kernel, all of it; reports say the first steps in their verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_analysis.text.figures import with_unit
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.analysis import NextStepPart

__all__ = ["AdviceSection"]


class AdviceSection(ReportSection):
    name = "next-steps"
    summary = "what to do next, in order of expected gain, and what would confirm it"
    title = "Next steps"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        """Nothing of its own: in reports each step stands in the verdict, beside what it is for."""
        _ = request
        return ()

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        analysis: Any = request.documents.get("analysis")
        label = next((entry for entry in getattr(analysis, "kernels", ()) if entry.kernel == kernel), None)
        steps = label.next_steps if label is not None else ()
        return tuple(block for number, step in enumerate(steps, 1) for block in _explained(number, step))


def _command(step: NextStepPart) -> str:
    return f"Run: {(step.command or '').replace('{command}', 'COMMAND')}"


def _explained(number: int, step: NextStepPart) -> Iterator[Block]:
    yield Paragraph(f"{number}. {step.text}")
    for each in step.confirm:
        from_counters = f" (counters {', '.join(each.counters)})" if each.counters else ""
        if each.value is None:
            yield Paragraph(f"   would confirm it: {each.quantity}, not recorded{from_counters}")
        else:
            figure = with_unit(each.value, each.unit, each.exactness, each.upper)
            yield Paragraph(f"   confirmed by: {each.quantity} {figure}{from_counters}")
    if step.command:
        yield Paragraph(f"   {_command(step)}")
    yield Paragraph(f"   source: {step.source}")
