"""The captured memory as plain files, what a launch leaves of it, and which bytes it reads and writes."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rpl_core.errors import BadDataError, MissingError, NoVerdictError, RplError, TimeLimitError
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import BLOCK_BYTES, Capture, Variable, blocks_with_data, chunk_hash
from rpl_vmreplay.capture.layout import HASH_BYTES, PACKED_SUFFIX
from rpl_vmreplay.capture.records import Region
from rpl_vmreplay.interfaces import (
    Failure,
    MemoryRange,
    RegionHashes,
    Replayer,
    ReplayError,
    ReplayRequest,
    ReplayResult,
)

#: An address, and the bytes that are there instead of the captured ones.
Change = tuple[int, bytes]


class PlainMemory:
    """Packed regions are unpacked into ``scratch``, once; the others are read where they are."""

    def __init__(self, capture: Capture, scratch: Path) -> None:
        self.capture = capture
        self._scratch = scratch
        self._unpacked: dict[int, Path] = {}

    def path_of(self, region: Region) -> Path:
        """A file of the region's size, with holes where there are zeros."""
        path = self.capture.path_of(region)
        if path.suffix != PACKED_SUFFIX:
            return path
        if region.base not in self._unpacked:
            target = self._scratch / f"region_{region.base:x}.bin"
            with target.open("wb") as stream:
                for offset, block in blocks_with_data(path, region.size):
                    if any(block):
                        stream.seek(offset)
                        stream.write(block)
                stream.truncate(region.size)
            self._unpacked[region.base] = target
        return self._unpacked[region.base]

    def region_of(self, address: int) -> Region | None:
        regions = self.capture.regions  # ascending
        place = bisect_right(regions, address, key=lambda region: region.base) - 1
        return regions[place] if place >= 0 and address < regions[place].end else None

    def read(self, address: int, size: int) -> bytes:
        """Captured bytes; they lie in one region."""
        region = self.region_of(address)
        if region is None or address + size > region.end:
            raise ValueError(f"0x{address:x} with {size} bytes is not in one captured region")
        with self.path_of(region).open("rb") as stream:
            stream.seek(address - region.base)
            return stream.read(size)

    def hashes(self, changes: Iterable[Change]) -> tuple[RegionHashes, ...]:
        """Of all regions with the changes in them, later ones over earlier ones."""
        by_region: dict[int, list[Change]] = defaultdict(list)
        for address, data in changes:
            if (region := self.region_of(address)) is not None:
                by_region[region.base].append((address, data))
        return tuple(
            RegionHashes(region.base, region.size, self._region_hashes(region, by_region[region.base]))
            for region in self.capture.regions
        )

    def _region_hashes(self, region: Region, changes: Sequence[Change]) -> bytes:
        hashes = bytearray(self._captured_hashes(region))
        parts: dict[int, list[Change]] = defaultdict(list)
        for address, data in changes:
            first = (address - region.base) // BLOCK_BYTES
            last = (address + len(data) - 1 - region.base) // BLOCK_BYTES
            for index in range(first, last + 1):
                parts[index].append((address, data))
        with self.path_of(region).open("rb") as stream:
            for index, inside in parts.items():
                stream.seek(index * BLOCK_BYTES)
                block = bytearray(stream.read(min(BLOCK_BYTES, region.size - index * BLOCK_BYTES)))
                for address, data in inside:
                    # Both ends of ``data`` may lie beyond the block.
                    offset = address - region.base - index * BLOCK_BYTES
                    begin, end = max(offset, 0), min(offset + len(data), len(block))
                    block[begin:end] = data[begin - offset : end - offset]
                hashes[index * HASH_BYTES : (index + 1) * HASH_BYTES] = chunk_hash(bytes(block))
        return bytes(hashes)

    def _captured_hashes(self, region: Region) -> bytes:
        captured = self.capture.hashes_of(region, "pre")
        if captured is not None:
            return captured.read_bytes()
        whole, rest = divmod(region.size, BLOCK_BYTES)
        hashes = bytearray(
            chunk_hash(bytes(BLOCK_BYTES)) * whole + (chunk_hash(bytes(rest)) if rest else b"")
        )
        for offset, block in blocks_with_data(self.path_of(region), region.size):
            place = offset // BLOCK_BYTES * HASH_BYTES
            hashes[place : place + HASH_BYTES] = chunk_hash(block)
        return bytes(hashes)


def reproduction(
    capture: Capture,
    request: ReplayRequest,
    hashes: Sequence[RegionHashes],
    variables: Mapping[str, bytes],
) -> tuple[bool | None, str | None, tuple[MemoryRange, ...]]:
    """Whether the memory is what it was after the captured launch, why nobody can say, and what differs.

    ``variables`` are the bytes of each captured variable of a module after the launch, by its file; those
    that this code does not have are absent.
    """
    if reason := _nothing_to_say(capture, request):
        return None, reason, ()
    found = {replayed.base: replayed.chunks for replayed in hashes}
    differing = []
    for region in capture.regions:
        expected = capture.hashes_of(region, "post")
        if expected is None or region.base not in found:
            return None, "the capture has no hashes of the memory after the launch", ()
        differing += _differing_chunks(region, expected.read_bytes(), found[region.base])
    wrong, unknown = _wrong_variables(capture, variables)
    if wrong and not differing:
        names = ", ".join(variable.name for variable in wrong)
        return False, f"variables of the module are not what the captured launch left: {names}", ()
    if unknown is not None and not differing:
        return None, unknown, ()
    return not differing, None, tuple(differing)


def _wrong_variables(capture: Capture, found: Mapping[str, bytes]) -> tuple[list[Variable], str | None]:
    """Those that are not as the captured launch left them, and why nobody can say so of all."""
    wrong, unknown = [], None
    for variable in capture.variables:
        expected, told = capture.hashes_of(variable, "post"), capture.extras_of_variable(variable)
        if expected is None:
            unknown = f"the capture has no hash of the variable {variable.name} after the launch"
        elif variable.blob in found:
            content = found[variable.blob]
            blocks = (content[at : at + BLOCK_BYTES] for at in range(0, len(content), BLOCK_BYTES))
            if b"".join(map(chunk_hash, blocks)) != expected.read_bytes():
                wrong.append(variable)
        elif told is None or told.changed_by_launch is not False:
            unknown = f"the captured launch changed the variable {variable.name}, which this code has not"
    return wrong, unknown


def _nothing_to_say(capture: Capture, request: ReplayRequest) -> str | None:
    if request.edits:
        return "memory was changed before the launch"
    if not request.recopy and request.iterations + request.warm_ups > 1:
        return "the memory was not restored between launches"
    if capture.extras is None or "none" in (capture.extras.memory.post, capture.extras.memory.hash):
        return "the capture has no hashes of the memory after the launch"
    if capture.extras.host_writers:
        return "the program wrote to memory while it was captured"
    return None


def _differing_chunks(region: Region, expected: bytes, found: bytes) -> list[MemoryRange]:
    if expected == found:
        return []
    return [
        MemoryRange(region.base + offset, min(BLOCK_BYTES, region.size - offset))
        for place in range(0, len(expected), HASH_BYTES)
        if expected[place : place + HASH_BYTES] != found[place : place + HASH_BYTES]
        for offset in (place // HASH_BYTES * BLOCK_BYTES,)
    ]


# Which captured bytes a launch reads and writes, as sorted ranges that do not touch each other.

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
