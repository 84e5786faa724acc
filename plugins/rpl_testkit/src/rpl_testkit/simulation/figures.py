"""Figures of a played program, from what the player knows of it: by definition, not by a graph of edges.

Each says in its own words what section 3 of docs/reference/execution-graph.md defines, step by step and
without regard for speed. ``group`` is the work of one clock, by number; all times are ns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_testkit.simulation.runtime import FUNCTIONS, HostWait, Played

if TYPE_CHECKING:
    from rpl_testkit.programs import RecordedCall, RecordedProgram, RecordedWork

Group = Sequence[int]
#: Ways in which other streams hold back work that was launched already.
_OTHERS = ("event", "null_stream")
_SYNCHRONISE = (*FUNCTIONS["sync_stream"], *FUNCTIONS["sync_event"], *FUNCTIONS["sync_device"])


@frozen
class Busy:
    """``kernel_ns``: while any kernel ran; ``copy_ns``: while copies ran and no kernel."""

    makespan_ns: int
    kernel_ns: int
    copy_ns: int
    total_ns: int

    @property
    def busy_ns(self) -> int:
        return self.kernel_ns + self.copy_ns


def on_machine(played: Played, machine: str) -> list[int]:
    """The work of all processes on a machine."""
    names = played.recording.machines
    return [i for i, work in enumerate(played.recording.work) if names[work.process] == machine]


def critical_path(played: Played, group: Group, weight: Callable[[int], int]) -> list[int] | None:
    """The work of the longest chain; ``None`` where several are as long."""
    heads = _heads(group, played.after, weight)
    ends = [i for i in group if heads[i] == max(heads.values())]
    path: list[int] = []
    while ends:
        if len(ends) > 1:
            return None
        path.append(ends[0])
        rest = heads[ends[0]] - weight(ends[0])
        ends = [i for i in played.after[ends[0]] if heads[i] == rest] if rest else []
    return path[::-1]


def lanes(played: Played) -> list[tuple[int, ...]]:
    """Per stream its work, in the order of submission."""
    found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for i, work in enumerate(played.recording.work):
        found[work.process, work.gpu, work.stream].append(i)
    return sorted(tuple(lane) for lane in found.values())


def busy(played: Played, group: Group) -> Busy:
    """What ran between the first begin and the last end."""
    kernel_ns = copy_ns = 0
    for begin, end, running in _moments(played, group):
        if any(not played.recording.work[i].is_copy for i in running):
            kernel_ns += end - begin
        elif running:
            copy_ns += end - begin
    first, last = _span(played, group)
    total = sum(played.work[i].end_ns - played.work[i].begin_ns for i in group)
    return Busy(last - first, kernel_ns, copy_ns, total)


def longest_ns(
    played: Played,
    group: Group,
    weight: Callable[[int], float],
    after: Sequence[frozenset[int]] | None = None,
) -> float:
    """The longest chain of work of which each piece had to wait for the one before, or was ``after`` it."""
    return max(_heads(group, played.after if after is None else after, weight).values(), default=0)


def slack_ns(played: Played, group: Group, weight: Callable[[int], int]) -> dict[int, int]:
    """Per piece of work how much longer it may take before the longest chain grows."""
    behind: dict[int, set[int]] = {i: set() for i in group}
    for i in group:
        for earlier in played.after[i]:
            behind[earlier].add(i)
    heads = _heads(group, played.after, weight)
    tails = _heads(list(reversed(group)), behind, weight)
    longest = max(heads.values())
    return {i: round(longest - heads[i] - tails[i] + weight(i)) for i in group}


def _heads(
    group: Group, before: Sequence[frozenset[int]] | dict[int, set[int]], weight: Callable[[int], float]
) -> dict[int, float]:
    """The longest chain that ends with each; ``group`` has work behind all that it waits for."""
    found: dict[int, float] = {}
    for i in group:
        found[i] = weight(i) + max((found[earlier] for earlier in before[i]), default=0)
    return found


def idle(
    played: Played, group: Group, *, redundant: bool = False, lost: frozenset[int] = frozenset()
) -> dict[str, int]:
    """Time in which nothing ran, by what the work that ended it was waiting for: section 3.5.

    ``redundant``: calls that block as a side effect count as waiting though they had nothing new to wait for.
    ``lost``: work of which the recording lacks the call.
    """
    found = {"host_ns": 0, "sync_ns": 0, "launch_ns": 0, "unattributed_ns": 0}
    calls = played.recording.calls
    for begin, end, ended_by in _gaps(played, group):
        work = played.work[ended_by]
        launch = calls[work.call]
        last_ns = _last_end(played, played.after[ended_by])
        if ended_by in lost:
            found["unattributed_ns"] += end - begin
            continue
        launched = min(max(launch.begin_ns, begin), end)
        waited = {wait.call for wait in _waits_before(played, work.call, redundant=redundant)}
        in_waits = 0
        for place, call in enumerate(calls[: work.call]):
            synchronises = call.function.removesuffix("_spt") in _SYNCHRONISE and _same_thread(call, launch)
            if synchronises or place in waited:
                in_waits += max(min(call.end_ns, launched) - max(call.begin_ns, begin), 0)
        found["sync_ns"] += in_waits
        found["host_ns"] += launched - begin - in_waits
        others = work.released_by in _OTHERS and last_ns > launch.begin_ns
        found["sync_ns" if others else "launch_ns"] += end - launched
    return found


def idle_calls(played: Played, group: Group) -> dict[str | None, int]:
    """The same time by the call that the thread which ended it was in."""
    found: dict[str | None, int] = defaultdict(int)
    calls = played.recording.calls
    for begin, end, ended_by in _gaps(played, group):
        own = [call for call in calls if _same_thread(call, calls[played.work[ended_by].call])]
        outside = end - begin
        for call in own:
            inside = min(call.end_ns, end) - max(call.begin_ns, begin)
            if inside > 0:
                found[call.function] += inside
                outside -= inside
        found[None] += outside
    return {name: time for name, time in found.items() if time}


def breakdown(played: Played, group: Group, *, redundant: bool | frozenset[int] = False) -> dict[str, int]:
    """What the makespan went by: from the last end back to what released it, and so on: section 3.4.

    ``redundant``: waits for what the thread had waited for before count too, all of them or those calls.
    """
    found = dict.fromkeys(("kernel_ns", "copy_ns", "launch_gap_ns", "host_gap_ns", "sync_wait_ns"), 0)
    calls = played.recording.calls
    first, _ = _span(played, group)
    piece: int | None = max(group, key=lambda i: played.work[i].end_ns)
    while piece is not None:
        work = played.work[piece]
        kind = "copy_ns" if played.recording.work[piece].is_copy else "kernel_ns"
        found[kind] += work.end_ns - work.begin_ns
        launched_ns = max(calls[work.call].begin_ns, first)
        last = _last_to_end(played, played.after[piece])
        since = first if last is None else played.work[last].end_ns
        waits = _waits_first_met(played, piece, redundant=redundant)
        if not waits or since > launched_ns:
            host_ns = max(min(launched_ns, work.begin_ns) - since, 0)
            others = work.released_by in _OTHERS and not host_ns  # else it was over before the call
            found["sync_wait_ns" if others else "launch_gap_ns"] += work.begin_ns - since - host_ns
            found["host_gap_ns"] += host_ns
            piece = last
            continue
        found["launch_gap_ns"] += work.begin_ns - launched_ns
        now, piece = launched_ns, None  # of the thread, going back
        while waits and piece is None:
            wait = waits.pop()
            back_ns, called_ns = max(calls[wait.call].end_ns, first), max(calls[wait.call].begin_ns, first)
            found["host_gap_ns"] += now - back_ns
            ended_ns = _last_end(played, wait.awaited)
            now = max(ended_ns, called_ns)
            found["sync_wait_ns"] += back_ns - now
            piece = _last_to_end(played, wait.awaited) if ended_ns > called_ns else None
        found["host_gap_ns"] += now - first if piece is None else 0
    return found


def application(
    played: Played, group: Group, *, redundant: bool = False
) -> Callable[[dict[int, float]], float]:
    """Gives the makespan if work took so many ns less, by model 3.3: waits and the host's time stay.

    Work begins as long after the last of what it waited for as it did. The first work that a thread puts into
    a stream after a wait waits for its launch too, which comes as long after the return as it did.
    """
    calls = played.recording.calls
    first, _ = _span(played, group)
    in_order = sorted(group, key=lambda i: played.work[i].begin_ns)
    waits_of = {i: tuple(_waits_first_met(played, i, redundant=redundant)) for i in group}
    last_of = {i: _last_end(played, played.after[i]) for i in group}

    def makespan_ns(saved: dict[int, float]) -> float:
        ends: dict[int, float] = {}
        known: dict[tuple[HostWait, ...], tuple[float, float]] = {(): (first, first)}

        def back(waits: tuple[HostWait, ...]) -> tuple[float, float]:
            """When the thread came back from the last of its waits, and would."""
            if waits not in known:
                call, awaited = calls[waits[-1].call], waits[-1].awaited
                was, now = back(waits[:-1])
                called = max(call.begin_ns, was)
                took = max(call.end_ns, first) - max(called, _last_end(played, awaited))
                would = max(called - was + now, *(ends[p] for p in awaited))
                known[waits] = max(call.end_ns, first), took + would
            return known[waits]

        for i in in_order:
            work = played.work[i]
            was_held: float = last_of[i]
            held = max((ends[p] for p in played.after[i]), default=0)
            if waits_of[i]:
                was, now = back(waits_of[i])
                launched = max(calls[work.call].begin_ns, was)
                was_held, held = max(was_held, launched), max(held, launched - was + now)
            ends[i] = work.end_ns - (was_held - held) - saved.get(i, 0)
        return max(ends.values()) - first

    return makespan_ns


def _last_to_end(played: Played, work: Iterable[int]) -> int | None:
    return max(work, key=lambda i: played.work[i].end_ns, default=None)


def _last_end(played: Played, work: Iterable[int]) -> int:
    return max((played.work[i].end_ns for i in work), default=0)


def _waits_before(played: Played, call: int, *, redundant: bool | frozenset[int]) -> list[HostWait]:
    """The waits that the thread of a call had come back from, in order.

    Those for what it had waited for before tell it nothing: they come with ``redundant`` only.
    """
    calls = played.recording.calls
    found: list[HostWait] = []
    known: frozenset[int] = frozenset()
    for wait in sorted(played.waits, key=lambda wait: wait.call):
        counts = redundant if isinstance(redundant, bool) else wait.call in redundant
        brings = wait.awaited if counts else wait.awaited - known
        if _same_thread(calls[wait.call], calls[call]) and wait.call < call and brings:
            found.append(wait)
            known |= wait.awaited
    return found


def _waits_first_met(played: Played, piece: int, *, redundant: bool | frozenset[int]) -> list[HostWait]:
    """The waits before a piece of work; none if its thread put other work into its stream since the last."""
    waits = _waits_before(played, played.work[piece].call, redundant=redundant)
    if not waits:
        return []
    calls, recorded = played.recording.calls, played.recording.work
    own, launch = recorded[piece], played.work[piece].call
    for other, work in zip(recorded, played.work, strict=True):
        between = waits[-1].call < work.call < launch and _same_thread(calls[work.call], calls[launch])
        if between and (own.process, own.gpu, own.stream) == (other.process, other.gpu, other.stream):
            return []
    return waits


def _same_thread(one: RecordedCall, other: RecordedCall) -> bool:
    return (one.process, one.thread) == (other.process, other.thread)


def _span(played: Played, group: Group) -> tuple[int, int]:
    return min(played.work[i].begin_ns for i in group), max(played.work[i].end_ns for i in group)


def _moments(played: Played, group: Group) -> Iterator[tuple[int, int, list[int]]]:
    """From each begin or end to the next one, with what ran."""
    times = sorted({t for i in group for t in (played.work[i].begin_ns, played.work[i].end_ns)})
    for begin, end in pairwise(times):
        yield begin, end, [i for i in group if played.work[i].begin_ns <= begin < played.work[i].end_ns]


def _gaps(played: Played, group: Group) -> Iterator[tuple[int, int, int]]:
    """Time in which nothing ran, and the work that ended it: of branches of a graph the first."""
    for begin, end, running in _moments(played, group):
        if not running:
            yield begin, end, next(i for i in group if played.work[i].begin_ns == end)


# What the recorded calls of a program prove about the order of its work, call by call.
#
# The rules are those that HIP documents for its functions (docs/reference/execution-graph.md, 2.11). Nothing
# but the recording is looked at: names, arguments, threads and times of calls, and which call submitted which
# work into which stream.
#
# A call comes *before* another one if the same thread made it earlier, or if it had returned before another
# thread made its call. Of calls that overlap nothing tells which took effect first.

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
