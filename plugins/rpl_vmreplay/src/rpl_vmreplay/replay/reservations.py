"""Which addresses `rpl replay reserve-check` asks for, and what it makes of the answers."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from rpl_vmreplay.interfaces.replayer import MemoryRange, ReplayError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.interfaces.replayer import ReserveResult

PAGE_BYTES = 4096
_PROBE_BYTES = 2 << 20
#: Asked for without a capture: where ROCr's switch for low addresses begins, 16 TiB, and among the libraries
#: of other processes (docs/REPLAY.md).
PROBES = tuple(MemoryRange(base, _PROBE_BYTES) for base in (0x4801400000, 0x100000000000, 0x7E0000000000))


class Verdict(IntEnum):
    """The exit code says it too."""

    EXACT = 0
    FAILED = 1
    RELOCATED = 2


def ranges_of(capture: Capture) -> tuple[MemoryRange, ...]:
    """Whole pages; those that share one or touch are one range, as the replayer reserves them."""
    ranges: list[MemoryRange] = []
    for region in sorted(capture.regions, key=lambda one: one.base):
        begin = region.base // PAGE_BYTES * PAGE_BYTES
        end = -(-region.end // PAGE_BYTES) * PAGE_BYTES
        if ranges and begin <= ranges[-1].address + ranges[-1].size:
            begin = ranges.pop().address
        ranges.append(MemoryRange(begin, end - begin))
    return tuple(ranges)


def verdict_of(result: ReserveResult) -> Verdict | None:
    """``None``: the failure says nothing of addresses."""
    asked = (ReplayError.RESERVE_FAILED, ReplayError.LAYOUT_CLASH, ReplayError.RELOCATED)
    if result.failure is not None and result.failure.kind not in asked:
        return None
    if result.failure is not None and result.failure.kind is not ReplayError.RELOCATED:
        return Verdict.FAILED
    return worst(result)


def worst(result: ReserveResult) -> Verdict:
    return max(_verdicts(result), default=Verdict.EXACT)


def _verdicts(result: ReserveResult) -> Iterable[Verdict]:
    return (Verdict.EXACT if one.exact else Verdict.RELOCATED for one in result.reservations)
