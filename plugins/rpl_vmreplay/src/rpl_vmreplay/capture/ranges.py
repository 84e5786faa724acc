"""Sets of bytes as sorted ranges that do not touch each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_vmreplay.interfaces.replayer import MemoryRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_vmreplay.capture.folder import Capture

Ranges = tuple[MemoryRange, ...]


def union(*sets: Iterable[MemoryRange]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted((one.address, one.address + one.size) for many in sets for one in many):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return _ranges(merged)


def without(left: Ranges, right: Ranges) -> Ranges:
    """What is in ``left`` and not in ``right``."""
    return _ranges(_remaining(left, right))


def common(left: Ranges, right: Ranges) -> Ranges:
    return without(left, without(left, right))


def size_of(ranges: Iterable[MemoryRange]) -> int:
    return sum(one.size for one in ranges)


def captured_ranges(capture: Capture) -> Ranges:
    """One for each region, though they may touch each other."""
    return tuple(MemoryRange(one.base, one.size) for one in capture.regions)


def inside(ranges: Ranges, capture: Capture) -> Ranges:
    """The part in captured memory, cut where regions end."""
    return tuple(piece for region in captured_ranges(capture) for piece in common(ranges, (region,)))


def _remaining(left: Ranges, right: Ranges) -> Iterator[tuple[int, int]]:
    at = 0
    for one in left:
        begin, end = one.address, one.address + one.size
        while at < len(right) and right[at].address + right[at].size <= begin:
            at += 1
        following = at
        while following < len(right) and right[following].address < end:
            if begin < right[following].address:
                yield begin, right[following].address
            begin = max(begin, right[following].address + right[following].size)
            following += 1
        if begin < end:
            yield begin, end


def _ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    return tuple(MemoryRange(begin, end - begin) for begin, end in pairs)
