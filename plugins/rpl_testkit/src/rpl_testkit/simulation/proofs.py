"""What the recorded calls of a program prove about the order of its work, call by call.

The rules are those that HIP documents for its functions (docs/reference/execution-graph.md, 2.11). Nothing
but the recording is looked at: names, arguments, threads and times of calls, and which call submitted which
work into which stream.

A call comes *before* another one if the same thread made it earlier, or if it had returned before another
thread made its call. Of calls that overlap nothing tells which took effect first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rpl_testkit.programs import RecordedCall, RecordedProgram, RecordedWork

__all__ = ["proven_order"]

_MARKS = ("hipEventRecord", "hipEventRecordWithFlags", "hipStreamWaitEvent")
_HOST_FUNCTIONS = ("hipLaunchHostFunc", "hipStreamAddCallback")
_NULL_ONLY = ("hipMemcpy", "hipMemset")
_IN_STREAM = (
    *("hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel"),
    *("hipGraphLaunch", "hipMemcpyAsync"),
    *_HOST_FUNCTIONS,
    *_NULL_ONLY,
    *_MARKS,
)
_RECORDS = ("hipEventRecord", "hipEventRecordWithFlags")
_FORGET = ("hipEventDestroy", "hipEventCreate")
_OF_DEVICE = ("hipDeviceSynchronize", "hipCtxSynchronize")
_COMES_BACK = ("hipStreamSynchronize", "hipEventSynchronize", *_OF_DEVICE)
_CREATES = ("hipStreamCreate", "hipStreamCreateWithFlags", "hipStreamCreateWithPriority")
_LEGACY, _OWN = 1, 2


def proven_order(program: RecordedProgram, *, marks_carry: bool = True) -> list[frozenset[int]]:
    """Per work (in the order of ``program.work``) the work that must have ended before it could begin.

    A record, wait or host function that a thread makes after a synchronisation comes after what it waited
    for, and so does what other threads put behind that mark. ``marks_carry`` False leaves such proofs out.
    Calls of other processes prove nothing.
    """
    proven: dict[int, frozenset[int]] = {}
    for process in range(len(program.machines)):
        number = [i for i, work in enumerate(program.work) if work.process == process]
        calls = [call for call in program.calls if call.process == process]
        own = _proven_in_process(calls, [program.work[i] for i in number], marks_carry=marks_carry)
        proven |= {i: frozenset(number[j] for j in before) for i, before in zip(number, own, strict=True)}
    return [proven[i] for i in range(len(program.work))]


def _proven_in_process(
    recorded: Sequence[RecordedCall], work: Sequence[RecordedWork], *, marks_carry: bool
) -> list[frozenset[int]]:
    calls = sorted(recorded, key=lambda call: call.correlation_id)
    facts = _Facts(calls, work, marks_carry=marks_carry)
    place_of = {call.correlation_id: place for place, call in enumerate(calls)}
    after: dict[int, frozenset[int]] = {}
    for place in range(len(calls)):
        _work_before(place, facts, after)
    return [after[place_of[piece.correlation_id]] for piece in work]


def _work_before(place: int, facts: _Facts, after: dict[int, frozenset[int]]) -> frozenset[int]:
    if place not in after:
        found: set[int] = set()
        for earlier in facts.reasons(place):
            found |= _work_before(earlier, facts, after)
            found.update(facts.work_of[earlier])
        after[place] = frozenset(found)
    return after[place]


class _Facts:
    """The recording, and which earlier calls the effect of a call comes after."""

    def __init__(
        self, calls: Sequence[RecordedCall], work: Sequence[RecordedWork], *, marks_carry: bool
    ) -> None:
        numbers: dict[int, list[int]] = {}
        for i, one in enumerate(work):
            numbers.setdefault(one.correlation_id, []).append(i)
        # Stream 0 of the functions with this suffix is the thread's own, as is hipStreamPerThread's.
        plain = [attrs.evolve(call, function=call.function.removesuffix("_spt")) for call in calls]
        self._calls, self._work, self._marks_carry = plain, work, marks_carry
        self._devices = _devices(calls)
        self._streams = _stream_lives(calls, self._devices)
        self.work_of = [numbers.get(call.correlation_id, []) for call in calls]

    def reasons(self, place: int) -> Iterator[int]:
        call = self._calls[place]
        for i, other in enumerate(self._calls):
            if i == place:
                continue
            before = _before(other, call)
            if other.function in _COMES_BACK and other.thread == call.thread and before:
                if self._marks_carry or call.function not in (*_MARKS, *_HOST_FUNCTIONS):
                    yield i  # The thread went on only when that call had come back.
            elif other.function in _IN_STREAM and call.function in _IN_STREAM:
                if self._streams[i] == self._streams[place] and (before or self._ran_before(i, place)):
                    yield i  # A stream is a FIFO.
            elif other.function in _IN_STREAM and before and self._covers(place, i):
                yield i
        if call.function in ("hipStreamWaitEvent", "hipEventSynchronize"):
            yield from self._latest_record(call)

    def _ran_before(self, first: int, second: int) -> bool:
        """Of calls that overlap, what ran first in a FIFO was submitted first."""
        ran = self.work_of[first], self.work_of[second]
        if not ran[0] or not ran[1] or _before(self._calls[second], self._calls[first]):
            return False
        return max(self._work[i].end_ns for i in ran[0]) <= min(self._work[i].begin_ns for i in ran[1])

    def _covers(self, place: int, submitted: int) -> bool:
        """Whether a synchronisation waits for a call that was made before it."""
        function = self._calls[place].function
        if function == "hipStreamSynchronize":
            return self._streams[submitted] == self._streams[place]
        stream = self._streams[submitted]
        return function in _OF_DEVICE and stream is not None and stream[-1] == self._devices[place]

    def _latest_record(self, call: RecordedCall) -> Iterator[int]:
        """The record that the event surely stands for when the call is made: the last one before it."""
        marks = [
            i
            for i, other in enumerate(self._calls)
            if other.event == call.event
            and other.function in (*_RECORDS, *_FORGET)
            and not _before(call, other)
        ]
        for i in marks:
            others = (self._calls[j] for j in marks if j != i)
            latest = _before(self._calls[i], call) and all(_before(other, self._calls[i]) for other in others)
            if latest and self._calls[i].function in _RECORDS:
                yield i


def _before(first: RecordedCall, second: RecordedCall) -> bool:
    if first.thread == second.thread:
        return first.correlation_id < second.correlation_id
    return first.end_ns < second.begin_ns


def _devices(calls: Sequence[RecordedCall]) -> list[int]:
    """Per call the device that its thread had chosen."""
    chosen: dict[int, int] = {}
    found: list[int] = []
    for call in calls:
        if call.function == "hipSetDevice":
            chosen[call.thread] = call.device or 0
        found.append(chosen.get(call.thread, 0))
    return found


def _stream_lives(calls: Sequence[RecordedCall], devices: Sequence[int]) -> list[tuple[int, int, int] | None]:
    """Per call its stream: which life of which pointer, which can come back after its destruction, and its
    device: that of the thread which made it. Null streams, one on each device, are of the calling thread's;
    so are threads' own default streams.
    """
    lives: dict[int, tuple[int, int, int]] = {}
    found: list[tuple[int, int, int] | None] = []
    for call, device in zip(calls, devices, strict=True):
        function = call.function.removesuffix("_spt")
        if call.stream is None and function not in _NULL_ONLY:
            found.append(None)
            continue
        if call.stream == _OWN or function != call.function:
            found.append((-1 - call.thread, 0, device))
            continue
        if call.stream in (None, 0, _LEGACY):
            found.append((0, 0, device))
            continue
        if function in _CREATES:
            lives[call.stream] = call.stream, lives.get(call.stream, (0, 0, 0))[1] + 1, device
        found.append(lives.get(call.stream, (call.stream, 0, device)))
    return found
