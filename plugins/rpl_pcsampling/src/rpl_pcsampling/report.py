"""The section on PC samples of all reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.text import shorten
from rpl_pcsampling.analyzer import FIELD
from rpl_pcsampling.phrases import (
    TOO_FEW,
    UNKNOWN,
    interval,
    main_stall,
    place_of,
    shown_kernel,
    summary,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_pcsampling.contract import Sampled, SampledKernel

__all__ = ["PcSampleSection"]

_SHOWN_KERNELS, _SHOWN_ROWS = 3, 5
_EXPLAINED = 20  # lines, and instructions, of one kernel that somebody asked for
_NAME_WIDTH = 60
_SKID = "Host-trap samples may lie up to two instructions beside the one that cost the time."


class PcSampleSection(ReportSection):
    """Draws its own HTML: source beside ISA, with what thread traces and the emulator know of it."""

    name = "pc-sampling"
    summary = "where waves are, whether they issue, and why not, from PC samples"
    title = "PC samples"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        kernels = _kernels(request)
        drawn = [
            block for kernel in kernels[:_SHOWN_KERNELS] for block in _blocks(kernel, request, _SHOWN_ROWS)
        ]
        if len(kernels) > _SHOWN_KERNELS:
            drawn.append(Paragraph("The other kernels: rpl explain KERNEL."))
        return tuple(drawn)

    def html(self, request: SectionRequest) -> str | None:
        kernels = _kernels(request)
        if not kernels:
            return None
        from rpl_pcsampling.report_html import samples_html

        return samples_html(kernels, request)

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        asked = (sampled for sampled in _kernels(request) if sampled.kernel == kernel)
        return tuple(block for sampled in asked for block in _explained(sampled, request))


def _kernels(request: SectionRequest) -> tuple[SampledKernel, ...]:
    profile: Any = request.documents.get("profile")
    content = getattr(profile, "sections", {}).get(FIELD)
    if not content:
        return ()
    from rpl_pcsampling.contract import PcSampling

    return PcSampling.model_validate(content).kernels


def _blocks(kernel: SampledKernel, request: SectionRequest, most: int) -> Iterator[Block]:
    yield Paragraph(f"{shown_kernel(kernel, request)}: {summary(kernel)}.")
    if kernel.kernel_reason:
        yield Paragraph(f"The kernels are unknown: {kernel.kernel_reason}.")
    yield from _state(kernel)
    if kernel.lines:
        rows = tuple((*_figures(line), place_of(line.source)) for line in kernel.lines[:most])
        yield Table((*_COLUMNS, "source line"), rows, right=_RIGHT)
    else:
        yield Paragraph(f"Source lines are unknown: {kernel.lines_reason}.")
        yield _instructions(kernel, most)


_COLUMNS = ("samples", "share (95 %)", "issued", "main stall", "lanes")
_RIGHT = ("samples", "share (95 %)", "issued", "lanes")


def _state(kernel: SampledKernel) -> Iterator[Block]:
    if kernel.stalls is None or kernel.issue_share is None:
        yield Paragraph(
            f"Issue and stalls are unknown: {kernel.unavailable.get('stalls', 'not recorded')}. {_SKID}"
        )
        return
    seen = [f"{stall.reason} {interval(stall)}" for stall in kernel.stalls if stall.samples]
    stalls = f"; stalled: {', '.join(seen)}" if seen else ""
    waves = "" if kernel.waves is None else f"; waves on the compute unit: {kernel.waves:.1f}"
    yield Paragraph(f"Waves issued in {interval(kernel.issue_share)} of the samples{stalls}{waves}.")


def _explained(kernel: SampledKernel, request: SectionRequest) -> Iterator[Block]:
    yield from _blocks(kernel, request, _EXPLAINED)
    if kernel.lines:
        yield _instructions(kernel, _EXPLAINED)
    if kernel.counters:
        beside = (
            f"{name} {metric.value:.3g}" + (f" to {metric.upper:.3g}" if metric.upper is not None else "")
            for name, metric in kernel.counters.items()
        )
        yield Paragraph(f"Counters of the same kernel: {', '.join(beside)}.")


def _instructions(kernel: SampledKernel, most: int) -> Table:
    by_text = kernel.position == "text"
    rows = tuple(
        (
            *_figures(place),
            "by its text" if by_text else f"0x{place.offset or 0:x}",
            shorten(place.instruction or "not decoded", _NAME_WIDTH),
            place_of(place.source),
        )
        for place in kernel.places[:most]
    )
    return Table((*_COLUMNS, "position", "instruction", "source line"), rows, right=_RIGHT)


def _figures(sampled: Sampled) -> tuple[str, ...]:
    issued = UNKNOWN if sampled.issued is None else f"{sampled.issued / sampled.samples:.0%}"
    share = f"{TOO_FEW} (to {sampled.share_high:.1%})" if sampled.too_few else interval(sampled)
    lanes = UNKNOWN if sampled.lanes is None else f"{sampled.lanes:.1f}"
    return f"{sampled.samples:,}", share, issued, main_stall(sampled), lanes
