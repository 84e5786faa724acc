"""Which captured bytes a launch reads and writes, as sorted ranges that do not touch each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError, NoVerdictError, RplError, TimeLimitError
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_vmreplay.interfaces.replayer import (
    Failure,
    MemoryRange,
    Replayer,
    ReplayError,
    ReplayRequest,
    ReplayResult,
)

if TYPE_CHECKING:
    from rpl_vmreplay.capture.folder import Capture


Ranges = tuple[MemoryRange, ...]


def union(*sets: Iterable[MemoryRange]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted((item.address, item.address + item.size) for many in sets for item in many):
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
    return sum(item.size for item in ranges)


def captured_ranges(capture: Capture) -> Ranges:
    """One for each region, though they may touch each other."""
    return tuple(MemoryRange(region.base, region.size) for region in capture.regions)


def inside(ranges: Ranges, capture: Capture) -> Ranges:
    """The part in captured memory, cut where regions end."""
    return tuple(piece for region in captured_ranges(capture) for piece in common(ranges, (region,)))


def _remaining(left: Ranges, right: Ranges) -> Iterator[tuple[int, int]]:
    at = 0
    for item in left:
        begin, end = item.address, item.address + item.size
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


# Which captured bytes a launch reads and writes, as replays that log their accesses show it.

PAGE_BYTES = 4096
#: Other orders of workgroups reach other bytes where the launch hands out work or adds by atomics.
ORDERS = 3


@frozen
class Accesses:
    """The bytes in captured regions that any of the replays touched; ``reproduced`` is that of the first."""

    read_first: Ranges
    written: Ranges
    reproduced: bool | None
    reproduced_reason: str | None

    @property
    def bytes(self) -> int:
        return size_of(union(self.read_first, self.written))


def accesses_of(capture: Capture, replayer: Replayer, time_limit_s: float | None = None) -> Accesses:
    """Every access of these replays was to captured memory: one to other memory ends a replay.

    Raises ``BadDataError`` where that happens, ``MissingError`` for a replayer that logs none, and what other
    failures of a replay are.
    """
    results = [
        logged(replayer, ReplayRequest(capture.folder, hashes=order == 0, access_log=True,
                                       variation=order, time_limit_s=time_limit_s))
        for order in range(ORDERS)
    ]  # fmt: skip
    logs = [result.accesses for result in results if result.accesses is not None]
    if len(logs) < len(results):
        raise MissingError(
            f"the replayer {replayer.name} does not tell what a launch reads and writes",
            cause=results[0].accesses_reason,
            next_step="choose another one with --replayer",
        )
    return Accesses(
        inside(union(*(log.read_first for log in logs)), capture),
        inside(union(*(log.written for log in logs)), capture),
        results[0].reproduced,
        results[0].reproduced_reason,
    )


def logged(replayer: Replayer, request: ReplayRequest) -> ReplayResult:
    result = replayer.replay(request)
    if result.failure is not None:
        raise _error(result.failure, request)
    return result


def _error(failure: Failure, request: ReplayRequest) -> RplError:
    if failure.kind is ReplayError.GPU_FAULT:
        from rpl_vmreplay.capture.folder import open_capture

        extras = open_capture(request.capture).extras
        if extras is not None and extras.memory.mode == "full" and extras.memory.left_out:
            return BadDataError(
                f"the launch reaches memory that the capture does not hold: {failure.fact}",
                cause="host memory was left out because the program had freed it"
                f" ({counted(len(extras.memory.left_out), 'range')}, which capture.json names)",
                next_step="keep that memory until the launch is over, and capture again",
            )
        return BadDataError(
            f"the launch reaches memory that the capture does not hold: {failure.fact}",
            cause="it was captured with --regions referenced, and the arguments do not lead there",
            next_step="capture with --regions full",
        )
    if failure.kind is ReplayError.TIME_LIMIT:
        return TimeLimitError(failure.fact, next_step="raise --kernel-timeout")
    kinds = {ReplayError.BAD_CODE: BadDataError, ReplayError.ISA_MISMATCH: BadDataError,
             ReplayError.UNDECIDABLE: NoVerdictError}  # fmt: skip
    error = kinds.get(failure.kind, MissingError)
    return error(failure.fact, cause=failure.cause, next_step=failure.next_step)


def pages_of(capture: Capture, touched: Sequence[MemoryRange]) -> Ranges:
    """The pages of what was touched, cut where their regions begin and end."""
    whole = union(
        MemoryRange(begin, -(-(item.address + item.size) // PAGE_BYTES) * PAGE_BYTES - begin)
        for item in touched
        for begin in (item.address // PAGE_BYTES * PAGE_BYTES,)
    )
    return inside(whole, capture)
