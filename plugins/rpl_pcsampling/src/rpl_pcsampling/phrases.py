"""How samples are said in every report."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from rpl_analysis.text import UNKNOWN
from rpl_core.text import counted, shorten

if TYPE_CHECKING:
    from rpl_core.interfaces.section import SectionRequest
    from rpl_pcsampling.contract import Sampled, SampledKernel, StallShare

__all__ = ["TOO_FEW", "UNKNOWN", "interval", "main_stall", "place_of", "shown_kernel", "summary"]

_NAME_WIDTH = 60
#: The answer for a row whose interval is wider than its share.
TOO_FEW = "too few samples"


def shown_kernel(kernel: SampledKernel, request: SectionRequest) -> str:
    """As the kernel is called in the rest of the report."""
    if kernel.kernel is None:
        return "kernels without a name"
    return request.short_names.get(kernel.kernel) or shorten(kernel.kernel, _NAME_WIDTH)


def summary(kernel: SampledKernel) -> str:
    """How many samples of what, and whether they are enough."""
    every = "" if kernel.sampled_every is None else f" every {kernel.sampled_every:,} {kernel.sampled_unit}"
    text = (
        f"{counted(kernel.samples, 'sample', shown=format(kernel.samples, ','))} "
        f"({kernel.method.replace('_', '-')}{every}, {kernel.origin}) in "
        f"{counted(kernel.dispatches, 'launch', 'launches', shown=format(kernel.dispatches, ','))}"
    )
    return f"{text}: {TOO_FEW}" if kernel.status == "too_few_samples" else text


def interval(sampled: Sampled | StallShare) -> str:
    """The share between the ends of its interval, in percent."""
    return f"{sampled.share:.1%} ({sampled.share_low:.1%} to {sampled.share_high:.1%})"


def main_stall(sampled: Sampled) -> str:
    """The most frequent stall reason with its part of the samples of the row."""
    if not sampled.stalls:
        return UNKNOWN
    reason, samples = next(iter(sampled.stalls.items()))
    return f"{reason} {samples / sampled.samples:.0%}"


def place_of(source: str | None) -> str:
    """File and line; folders are those of whichever machine compiled the program."""
    innermost = (source or "").partition(" -> ")[0]
    return shorten(PurePath(innermost).name, _NAME_WIDTH) if innermost else UNKNOWN
