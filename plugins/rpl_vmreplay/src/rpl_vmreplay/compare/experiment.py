"""Replays of one capture for a comparison: what the baseline writes, under poison and in other orders."""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from rpl_core.interfaces.options import Options
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.plain_memory import (
    PlainMemory,
    Ranges,
    captured_ranges,
    common,
    inside,
    size_of,
    union,
    without,
)
from rpl_vmreplay.interfaces import (
    AccessLog,
    Failure,
    Finding,
    KeptVariable,
    MemoryEdit,
    MemoryRange,
    Replayer,
    ReplayError,
    ReplayRequest,
    ReplayResult,
    Rounding,
)

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
        others = {
            variable.name
            for variable in result.variables
            if variable.data != self._variables.get(variable.name)
        }
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


# The replays themselves.

#: As floats of any size the first is no number and the second a large one.
PATTERNS = (0xFF, 0x55)
#: Other orders of workgroups in which the baseline runs beside the usual one.
VARIATIONS = (1, 2, 3)
#: A wrong kernel may go on for ever.
_MOST_TIMES_LONGER, _LEAST_LIMIT_S = 10.0, 2.0

#: What ends a launch because of the kernel itself: another one than the baseline then.
CRASHES = (ReplayError.GPU_FAULT, ReplayError.TIME_LIMIT)


class NoBaselineError(Exception):
    """Why nothing can be compared."""


@frozen
class Baseline:
    """``contents`` are the bytes of the write set after each run (``Observer.contents``), the first in the
    usual order."""

    writes: WriteSet
    observer: Observer
    contents: tuple[tuple[bytes, ...], ...]
    limit_s: float
    read: Ranges = ()  # in captured memory, before it is written; empty without a log


@frozen
class Answer:
    """What another code object did: a failure, or its bytes of the write set and what it wrote beside."""

    failure: Failure | None
    contents: tuple[bytes, ...] = ()
    outside: Ranges = ()


@frozen
class Seen:
    """What one run left: all of the regions that were asked for, and the module's variables by name."""

    failure: Failure | None
    kept: tuple[bytes, ...] = ()
    variables: tuple[KeptVariable, ...] = ()
    written: Ranges = ()  # in captured memory
    read_first: Ranges = ()
    rounded: bool = True
    findings: frozenset[str] = frozenset()  # their kinds


@attrs.define
class Experiment:
    """Counts its replays."""

    capture: Capture
    replayer: Replayer
    time_limit_s: float | None = None
    options: Options = attrs.field(factory=Options)
    #: ``None``: where the replayer looks for races.
    sanitize: bool | None = None
    replays: int = 0

    def baseline(self, code: Path) -> Baseline:
        """Raises ``NoBaselineError``."""
        begin = time.monotonic()
        request = ReplayRequest(self.capture.folder, code_object=code, hashes=False, keep_variables=True)
        first = self._run(attrs.evolve(request, access_log=True))
        limit_s = max(_LEAST_LIMIT_S, _MOST_TIMES_LONGER * (time.monotonic() - begin))
        observer, writes = self._logged(first, first.accesses) if first.accesses else self._unlogged(code)
        if not writes.written and not writes.variables:
            raise NoBaselineError("the launch writes nothing")
        runs = [(pattern, 0) for pattern in PATTERNS]
        runs += [(PATTERNS[number % 2], variation) for number, variation in enumerate(VARIATIONS)]
        contents = [self._contents(code, writes, observer, *run) for run in runs]
        read = () if first.accesses is None else inside(union(first.accesses.read_first), self.capture)
        return Baseline(writes, observer, tuple(contents), limit_s, read)

    def other(
        self,
        code: Path,
        baseline: Baseline,
        pattern: int,
        variation: int = 0,
        rounding: Rounding = Rounding.NEAREST,
        edits: tuple[MemoryEdit, ...] = (),
        *,
        keep_halves: bool = False,
    ) -> Answer:
        """``edits`` are of what the baseline reads."""
        writes, observer = baseline.writes, baseline.observer
        self.replays += 1
        request = self._request(code, writes, observer, pattern, variation, baseline.limit_s)
        request = attrs.evolve(
            request,
            rounding=rounding,
            keep_halves=keep_halves,
            edits=(*request.edits, *edits),
            options=self.options,
        )
        result = self.replayer.replay(request)
        if result.failure is not None:
            return Answer(result.failure)
        outside = observer.outside(result, writes)
        if outside and result.accesses is not None:
            outside = without(outside, self._left_as_they_were(request, writes, outside, result.accesses))
        return Answer(None, observer.contents(result, writes), outside)

    def _left_as_they_were(
        self, request: ReplayRequest, writes: WriteSet, outside: Ranges, accesses: AccessLog
    ) -> Ranges:
        """In the baseline's own buffers read, and written with what was there: an atomic that adds
        nothing."""
        own = tuple(one for one in captured_ranges(self.capture) if common(writes.written, (one,)))
        places = common(inside(common(outside, union(accesses.read_first)), self.capture), own)
        if not places:
            return ()
        self.replays += 1
        kept = self.replayer.replay(attrs.evolve(request, keep=places)).kept
        with tempfile.TemporaryDirectory(prefix="rpl-captured-") as folder:
            memory = PlainMemory(self.capture, Path(folder))
            before = tuple(memory.read(place.address, place.size) for place in places)
        return without(places, differing(places, before, kept)) if len(kept) == len(places) else ()

    def seen(
        self,
        code: Path,
        keep: Ranges,
        edits: tuple[MemoryEdit, ...],
        limit_s: float | None,
        *,
        variation: int = 0,
        rounding: Rounding = Rounding.NEAREST,
        keep_halves: bool = False,
        sanitize: bool = False,
    ) -> Seen:
        """With a log of accesses."""
        self.replays += 1
        request = ReplayRequest(
            self.capture.folder,
            code_object=code,
            edits=edits,
            keep=keep,
            hashes=False,
            access_log=True,
            keep_variables=True,
            variation=variation,
            rounding=rounding,
            keep_halves=keep_halves,
            sanitize=sanitize,
            time_limit_s=limit_s,
            options=self.options,
        )
        result = self.replayer.replay(request)
        if result.failure is not None or result.accesses is None:
            return Seen(result.failure or Failure(ReplayError.UNSUPPORTED, "no accesses were logged"))
        variables = places_of(result.variables, {variable.name for variable in result.variables})
        written = union(result.accesses.written)
        if beside := without(without(written, inside(written, self.capture)), variables):
            fact = f"it writes {size_of(beside)} bytes of its module that are in no captured variable"
            return Seen(Failure(ReplayError.UNSUPPORTED, fact))
        return Seen(
            None,
            result.kept,
            result.variables,
            inside(written, self.capture),
            inside(union(result.accesses.read_first), self.capture),
            result.rounded is not False,
            frozenset(finding.kind for finding in result.findings or ()),
        )

    def findings(self, code: Path, limit_s: float | None = None) -> tuple[Finding, ...] | Failure:
        """What races and the like there are, in two orders of workgroups. Raises ``NoBaselineError``."""
        found: list[Finding] = []
        for variation in range(2):
            self.replays += 1
            request = ReplayRequest(
                self.capture.folder,
                code_object=code,
                hashes=False,
                sanitize=True,
                variation=variation,
                time_limit_s=limit_s or self.time_limit_s,
                options=self.options,
            )
            result = self.replayer.replay(request)
            if result.failure is not None:
                return result.failure
            if result.findings is None:
                raise NoBaselineError(f"the replayer {self.replayer.name} looks for no races")
            found += result.findings
        return tuple(found)

    def _logged(self, first: ReplayResult, accesses: AccessLog) -> tuple[Observer, WriteSet]:
        everything = union(accesses.written)
        written = inside(everything, self.capture)
        beside = without(everything, written)
        names = tuple(
            variable.name
            for variable in first.variables
            if common(beside, places_of((variable,), {variable.name}))
        )
        if lost := without(beside, places_of(first.variables, names)):
            raise NoBaselineError(
                f"the launch writes {size_of(lost)} bytes of its module that are in no captured variable"
            )
        read_first = common(written, union(accesses.read_first))
        return LoggedAccesses(), WriteSet(written, without(written, read_first), read_first, names)

    def _unlogged(self, code: Path) -> tuple[Observer, WriteSet]:
        """What changes is written; what comes out otherwise after poison was read, or is near to what was."""
        regions = captured_ranges(self.capture)
        if size_of(regions) > MOST_BYTES_WITHOUT_LOG:
            raise NoBaselineError(
                f"{self.replayer.name} logs no accesses, so all memory is compared after each replay; the "
                f"{size_of(regions)} captured bytes are more than the {MOST_BYTES_WITHOUT_LOG} for which "
                "that is done. Next: compare in the emulator (without --replayer), or a capture made smaller "
                "by `rpl capture shrink`"
            )
        with tempfile.TemporaryDirectory(prefix="rpl-captured-") as folder:
            memory = PlainMemory(self.capture, Path(folder))
            captured = tuple(memory.read(region.address, region.size) for region in regions)
        request = ReplayRequest(self.capture.folder, code_object=code, keep=regions, hashes=False)
        first = self._run(attrs.evolve(request, keep_variables=True))
        observer = WholeMemory(
            regions, first.kept, {variable.name: variable.data for variable in first.variables}
        )
        written = whole_words(differing(regions, captured, observer.usual), regions)
        names = self._changed_variables(first)
        writes = WriteSet(written, written, (), names)
        usual, count = observer.contents(first, writes), len(written)
        runs = [self._contents(code, writes, observer, pattern, 0)[:count] for pattern in PATTERNS]
        changed = [differing(written, usual[:count], run) for run in runs]
        read_first = union(*changed)
        writes = WriteSet(written, without(written, read_first), common(written, read_first), names)
        if read_first and any(self._contents(code, writes, observer, one, 0) != usual for one in PATTERNS):
            raise NoBaselineError("nobody knows what the launch reads before it writes there")
        return observer, writes

    def _changed_variables(self, first: ReplayResult) -> tuple[str, ...]:
        captured = {variable.name: variable.blob for variable in self.capture.variables}
        return tuple(
            variable.name
            for variable in first.variables
            if variable.data != (self.capture.folder / captured[variable.name]).read_bytes()
        )

    def _request(
        self,
        code: Path,
        writes: WriteSet,
        observer: Observer,
        pattern: int,
        variation: int,
        limit_s: float | None,
    ) -> ReplayRequest:
        return ReplayRequest(
            self.capture.folder,
            code_object=code,
            edits=tuple(MemoryEdit(one.address, bytes([pattern]) * one.size) for one in writes.poisoned),
            keep=observer.keep(writes),
            hashes=False,
            access_log=observer.logs,
            keep_variables=True,
            variation=variation,
            time_limit_s=limit_s,
        )

    def _contents(
        self, code: Path, writes: WriteSet, observer: Observer, pattern: int, variation: int
    ) -> tuple[bytes, ...]:
        result = self._run(self._request(code, writes, observer, pattern, variation, self.time_limit_s))
        places = None if result.accesses is None else inside(union(result.accesses.written), self.capture)
        if observer.logs and places != writes.written:
            raise NoBaselineError("the baseline writes elsewhere when its workgroups change their order")
        return observer.contents(result, writes)

    def _run(self, request: ReplayRequest) -> ReplayResult:
        self.replays += 1
        limit_s = request.time_limit_s or self.time_limit_s
        result = self.replayer.replay(attrs.evolve(request, time_limit_s=limit_s, options=self.options))
        if result.failure is not None:
            raise NoBaselineError(f"the baseline does not replay: {result.failure.fact}")
        return result
