"""Section on the thread trace: where waves spent their time, by source line, instruction and wait."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from rpl_core.text.figures import number, percent
from rpl_llm_unroll.prompt.figures import missing
from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import fenced, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_att.contract import AttPart
    from rpl_llm_unroll.prompt.facts import RunFacts

_TITLE = "Thread trace"
_SHOWN_LINES, _SHOWN_INSTRUCTIONS, _SHOWN_WAITS, _SHOWN_PRODUCERS = 12, 12, 6, 3


def thread_trace_section(facts: RunFacts) -> Section:
    timing = facts.timing
    trace = timing.att if timing is not None else None
    if trace is None:
        return Section(_TITLE, missing("`rpl profile --deep-analysis` records one"))
    if trace.cycles is None:
        return Section(_TITLE, missing(trace.reason or trace.status))
    head = f"One dispatch ({trace.origin}); shares are of all traced waves' time."
    return Section(_TITLE, f"{head}\n\n{fenced(chr(10).join(_lines(trace)))}")


def _lines(trace: AttPart) -> Iterator[str]:
    yield (
        f"wave time: issue {percent(trace.issue_fraction)}, stall {percent(trace.stall_fraction)}, "
        f"idle {percent(trace.idle_fraction)}"
    )
    split = trace.stall_split
    if split is not None:
        counters = ", ".join(f"{sentence(k)} {percent(v)}" for k, v in sorted(split.memory_wait.items()))
        yield f"memory waits: {percent(split.memory_wait_fraction)}{f' ({counters})' if counters else ''}"
        yield f"barrier: {percent(split.barrier_fraction)}"
        yield f"full pipes: {percent(split.pipe_backpressure_fraction)}"
    if trace.avg_memory_latency is not None:
        yield f"latency of vector memory loads: {number(trace.avg_memory_latency)} cycles (mean)"
    for line in trace.hot_lines[:_SHOWN_LINES]:
        yield f"line {percent(line.share)}  {_place(line.source)}"
    if not trace.hot_lines:
        yield "lines: not collected (the program has no line tables)"
    for row in trace.hot_instructions[:_SHOWN_INSTRUCTIONS]:
        yield f"instruction {percent(row.share)}  {sentence(row.isa)}  {_place(row.source)}".rstrip()
    for wait in trace.waits[:_SHOWN_WAITS]:
        producers = "; ".join(sentence(p.isa) for p in wait.producers[:_SHOWN_PRODUCERS])
        yield f"wait {percent(wait.share)}  {sentence(wait.isa)}" + (f" for {producers}" if producers else "")


def _place(source: str | None) -> str:
    """File name and line; the folders of the machine that compiled it are nobody's business."""
    return "" if source is None else sentence(PurePath(source).name)
