"""How it is known what a replay wrote: by the replayer's log, or by the difference of all captured memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_vmreplay.capture.ranges import Ranges, common, union, without
from rpl_vmreplay.interfaces.replayer import MemoryRange

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from rpl_vmreplay.interfaces.replayer import KeptVariable, ReplayResult

#: Without a log all memory comes back from each replay.
MOST_BYTES_WITHOUT_LOG = 1 << 30
#: Of the largest numbers.
_WORD_BYTES = 8


@frozen
class WriteSet:
    """What the baseline writes in captured memory.

    ``poisoned`` gets patterns before each run; ``read_first`` is read before it is written and keeps its
    captured bytes. ``variables`` of the module are written too: by name, since other code has them elsewhere;
    they always begin with their captured values.
    """

    written: Ranges
    poisoned: Ranges
    read_first: Ranges
    variables: tuple[str, ...] = ()


class Observer(ABC):
    logs: bool

    @abstractmethod
    def keep(self, writes: WriteSet) -> Ranges:
        """What replays have to give back."""

    @abstractmethod
    def contents(self, result: ReplayResult, writes: WriteSet) -> tuple[bytes, ...]:
        """The bytes of each range of the write set, then those of each of its variables."""

    @abstractmethod
    def outside(self, result: ReplayResult, writes: WriteSet) -> Ranges:
        """What was written beside the write set."""


class LoggedAccesses(Observer):
    logs = True

    def keep(self, writes: WriteSet) -> Ranges:
        return writes.written

    def contents(self, result: ReplayResult, writes: WriteSet) -> tuple[bytes, ...]:
        return result.kept + variables_of(result.variables, writes.variables)

    def outside(self, result: ReplayResult, writes: WriteSet) -> Ranges:
        written = () if result.accesses is None else union(result.accesses.written)
        return without(written, union(writes.written, places_of(result.variables, writes.variables)))


class WholeMemory(Observer):
    """``usual`` is the memory that the baseline leaves, ``variables`` those of its module. What is written
    without a change is not seen."""

    logs = False

    def __init__(self, regions: Ranges, usual: tuple[bytes, ...], variables: Mapping[str, bytes]) -> None:
        self._regions = regions
        self.usual = usual
        self._variables = variables

    def keep(self, writes: WriteSet) -> Ranges:
        del writes
        return self._regions

    def contents(self, result: ReplayResult, writes: WriteSet) -> tuple[bytes, ...]:
        kept = tuple(slices(self._regions, result.kept, writes.written))
        return kept + variables_of(result.variables, writes.variables)

    def outside(self, result: ReplayResult, writes: WriteSet) -> Ranges:
        changed = without(differing(self._regions, self.usual, result.kept), writes.written)
        others = {one.name for one in result.variables if one.data != self._variables.get(one.name)}
        return union(changed, places_of(result.variables, others - set(writes.variables)))


def variables_of(kept: Sequence[KeptVariable], names: Sequence[str]) -> tuple[bytes, ...]:
    """The bytes of each; nothing where the code has no such variable."""
    found = {one.name: one.data for one in kept}
    return tuple(found.get(name, b"") for name in names)


def places_of(kept: Iterable[KeptVariable], names: Container[str]) -> Ranges:
    """Where the code has them."""
    return union(MemoryRange(one.address, len(one.data)) for one in kept if one.name in names)


def slices(regions: Ranges, contents: Sequence[bytes], wanted: Ranges) -> Iterator[bytes]:
    """The bytes of each wanted range, which lies in one region."""
    for one in wanted:
        for region, content in zip(regions, contents, strict=True):
            offset = one.address - region.address
            if 0 <= offset < region.size:
                yield content[offset : offset + one.size]
                break


def differing(regions: Ranges, before: Sequence[bytes], after: Sequence[bytes]) -> Ranges:
    """Which bytes are not the same; no range leads from one region into the next."""
    import numpy as np

    ranges = []
    for region, old, new in zip(regions, before, after, strict=True):
        if old == new:
            continue
        changed = np.frombuffer(old, np.uint8) != np.frombuffer(new, np.uint8)
        steps = np.flatnonzero(np.diff(np.concatenate(([False], changed, [False])).astype(np.int8)))
        pairs = zip(steps[::2].tolist(), steps[1::2].tolist(), strict=True)
        ranges += [MemoryRange(region.address + begin, end - begin) for begin, end in pairs]
    return tuple(ranges)


def whole_words(ranges: Ranges, regions: Ranges) -> Ranges:
    """Numbers of which some bytes stayed as they were are written as a whole."""
    wide = []
    for one in ranges:
        begin = one.address // _WORD_BYTES * _WORD_BYTES
        end = -(-(one.address + one.size) // _WORD_BYTES) * _WORD_BYTES
        wide.append(MemoryRange(begin, end - begin))
    return tuple(piece for region in regions for piece in common(union(wide), (region,)))
