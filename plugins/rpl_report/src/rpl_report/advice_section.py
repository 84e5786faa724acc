"""What to do next: a few lines for each of the first subjects, and all of it for one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_analysis.text.figures import between, duration_ns, mark, marked, percent, unit_of
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest
from rpl_core.text.safety import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.analysis import ConfirmationPart, NextStepPart, PriorityPart

__all__ = ["UNTIMED", "UNTIMED_COMMAND", "AdviceSection"]

_SHOWN = 3
_NAME_WIDTH = 60


#: What a recording of thread traces alone lacks, and what records both.
UNTIMED = "No kernel is timed, so no gain is known: record a kernel trace beside the thread trace."
UNTIMED_COMMAND = "rpl profile --deep-analysis -- COMMAND"


class AdviceSection(ReportSection):
    name = "next-steps"
    summary = "what to do next, in order of expected gain, and what would confirm it"
    title = "Next steps"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        analysis: Any = request.documents.get("analysis")
        shown = getattr(analysis, "next_steps", ())[:_SHOWN]
        if not shown:
            return tuple(_by_time(request))
        told: dict[str, int] = {}
        ranged = any(entry.gain_at_most_ns is not None for entry in shown)
        most = " at most" if ranged else ""
        head = Paragraph(f"By what the run saves{most} if the subject takes half its time:")
        entries = enumerate(shown, 1)
        return (head, *(b for number, entry in entries for b in _priority(number, entry, request, told)))

    def html(self, request: SectionRequest) -> str | None:
        """Nothing of its own: on the page each step stands beside the finding that it answers."""
        _ = request
        return ""

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        analysis: Any = request.documents.get("analysis")
        label = next((entry for entry in getattr(analysis, "kernels", ()) if entry.kernel == kernel), None)
        steps = label.next_steps if label is not None else ()
        return tuple(block for number, step in enumerate(steps, 1) for block in _explained(number, step))


def _by_time(request: SectionRequest) -> Iterator[Block]:
    """Where no gain is known: the first step of the kernels that take the most time."""
    analysis: Any = request.documents.get("analysis")
    profile: Any = request.documents.get("profile")
    steps = {entry.kernel: entry.next_steps for entry in getattr(analysis, "kernels", ())}
    timed = [entry for entry in getattr(profile, "kernels", ()) if entry.time_share and steps.get(entry.name)]
    if not timed:
        if not getattr(profile, "kernels", None) and getattr(profile, "untimed_thread_traces", None):
            yield Paragraph(f"{UNTIMED} Run: {UNTIMED_COMMAND}")
        return
    yield Paragraph("What faster kernels bring is unknown without a critical path. By kernel time:")
    told: dict[str, int] = {}
    ranked = sorted(timed, key=lambda entry: -entry.time_share)[:_SHOWN]
    for number, kernel in enumerate(ranked, 1):
        subject = request.short_names.get(kernel.name) or shorten(kernel.name, _NAME_WIDTH)
        gain = f"{number}. {subject} ({kernel.bottleneck}): {percent(kernel.time_share)} of kernel time"
        yield from _with_step(number, gain, steps[kernel.name][0], told)


def _priority(
    number: int, entry: PriorityPart, request: SectionRequest, told: dict[str, int]
) -> Iterator[Block]:
    """The subject with its gain, and its first step; ``told`` holds the steps of those before it."""
    subject = request.short_names.get(entry.subject) or shorten(entry.subject, _NAME_WIDTH)
    label = f" ({entry.label})" if entry.label else ""
    gain = f"{number}. {subject}{label}: {_gain(entry)}"
    step = next(iter(entry.steps), None)
    if step is None:
        yield Paragraph(f"{gain}.")
    else:
        yield from _with_step(number, gain, step, told)


def _gain(entry: PriorityPart) -> str:
    """Both ends where the order of streams is unknown."""
    least, most, share = entry.gain_ns, entry.gain_at_most_ns, entry.share
    if share is None:
        return f"the gains below are known to within {duration_ns(most)} only"
    if most is None:
        return f"{duration_ns(least)}, {percent(share)} of the makespan"
    shares = between(percent(share), percent(entry.share_at_most))
    return f"{between(duration_ns(least), duration_ns(most))}, {shares} of the makespan"


def _with_step(number: int, gain: str, step: NextStepPart, told: dict[str, int]) -> Iterator[Block]:
    if step.advice in told:
        yield Paragraph(f"{gain}; the step of {told[step.advice]} holds here, too.")
    else:
        told[step.advice] = number
        yield Paragraph(f"{gain}.")
        yield Paragraph(f"   {step.text}{_how(step)}")


def _how(step: NextStepPart) -> str:
    known = [_figure(each) for each in step.confirm if each.value is not None]
    now = f" Now: {', '.join(known)}." if known else ""
    return f"{now} {_command(step)}" if step.command else now


def _command(step: NextStepPart) -> str:
    return f"Run: {(step.command or '').replace('{command}', 'COMMAND')}"


def _explained(number: int, step: NextStepPart) -> Iterator[Block]:
    yield Paragraph(f"{number}. {step.text}")
    for each in step.confirm:
        from_counters = f" (counters {', '.join(each.counters)})" if each.counters else ""
        if each.value is None:
            yield Paragraph(f"   would confirm it: {each.quantity}, not recorded{from_counters}")
        else:
            yield Paragraph(f"   confirmed by: {_figure(each)}{from_counters}")
    if step.command:
        yield Paragraph(f"   {_command(step)}")
    yield Paragraph(f"   source: {step.source}")


def _figure(each: ConfirmationPart) -> str:
    if each.unit == "fraction":
        ends = [percent(end) for end in (each.value, each.upper) if end is not None]
        return f"{each.quantity} {mark(each.exactness) if each.upper is None else ''}{between(*ends)}"
    unit = unit_of(each.value or 0.0, each.unit)
    return f"{each.quantity} {marked(each.value, each.exactness, each.upper)} {unit}".rstrip()
