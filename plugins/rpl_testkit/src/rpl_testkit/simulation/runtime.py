"""Plays host programs event by event: threads call, streams are FIFOs, work begins when nothing blocks it.

The model is the one that docs/reference/execution-graph.md states: durations don't depend on what runs at the
same time. A command is blocked by the one before it in its stream, by the record that it waits for, by the
other side of its device's legacy null stream, by work on its hardware queue, and by all that its thread had
waited for before it made the call. Everything but the queue is what the HIP runtime promises.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import attrs

from rpl_core.values import frozen
from rpl_testkit.programs import RecordedCall, RecordedProgram, RecordedWork

# Host programs as data: what each thread calls, one step after the other, and the HIP functions by step.
#
# Streams and events are numbered by the program; stream 0 is the legacy null stream of the thread's device,
# and OWN_STREAM the thread's own default stream on it. They exist from the start, as every thread starts on
# device 0. Other streams are of the device that was current when they were made. Times are ns.
#
# What each function waits for: docs/reference/execution-graph.md, 2.12.

OWN_STREAM: Final = -1

Kind = Literal[
    "launch",
    "graph",
    "copy",
    "blocking_copy",
    "memset",
    "host_function",
    "record",
    "wait",
    "sync_stream",
    "sync_event",
    "sync_device",
    "query_stream",
    "query_event",
    "free",
    "set_device",
    "create_stream",
    "destroy_stream",
    "destroy_event",
    # No calls, so that no recording shows them: the thread computes, tells others, waits until it is told.
    "think",
    "tell",
    "listen",
]

#: Per kind of step the functions that mean it; a step takes the first unless it names another.
FUNCTIONS: Final = {
    "launch": ("hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel"),
    "graph": ("hipGraphLaunch",),
    "copy": ("hipMemcpyAsync",),
    "blocking_copy": ("hipMemcpy",),
    "memset": ("hipMemset",),
    "host_function": ("hipLaunchHostFunc", "hipStreamAddCallback"),
    "record": ("hipEventRecord", "hipEventRecordWithFlags"),
    "wait": ("hipStreamWaitEvent",),
    "sync_stream": ("hipStreamSynchronize",),
    "sync_event": ("hipEventSynchronize",),
    "sync_device": ("hipDeviceSynchronize", "hipCtxSynchronize"),
    "query_stream": ("hipStreamQuery",),
    "query_event": ("hipEventQuery",),
    "free": ("hipFree",),
    "set_device": ("hipSetDevice",),
    "create_stream": ("hipStreamCreateWithFlags", "hipStreamCreateWithPriority", "hipStreamCreate"),
    "destroy_stream": ("hipStreamDestroy",),
    "destroy_event": ("hipEventDestroy",),
}
_NAMES_STREAM: Final = (
    "launch",
    "graph",
    "copy",
    "host_function",
    "record",
    "wait",
    "sync_stream",
    "query_stream",
)
#: Steps with a stream argument.
OF_STREAM: Final = (*_NAMES_STREAM, "create_stream", "destroy_stream")
OF_EVENT: Final = ("record", "wait", "sync_event", "query_event", "destroy_event")
#: Functions without a stream argument that put work into the null stream.
NULL_ONLY: Final = ("blocking_copy", "memset")
WORK: Final = ("launch", "graph", "copy", *NULL_ONLY)
POLLS: Final = ("query_stream", "query_event")
_PER_THREAD: Final = "_spt"


@frozen
class Step:
    """``before_ns`` and ``after_ns``: time inside the call until it takes effect, and from then on.

    ``duration_ns`` is that of the work, or of thinking; ``event`` is also the number of what is told. A graph
    has ``branches`` that run beside each other: kernels called ``name/number``, the first the longest.
    ``device`` is what a thread sets; it puts work only into streams of that one, as HIP demands.

    ``waits`` is what the recording doesn't say of calls that may wait or not: a copy of pageable memory, a
    memset of host memory, a free of memory, the destruction of a stream that drains it, a query that is
    repeated until it succeeds. ``which`` of the functions that mean the same is called; ``by_name``: the null
    stream is named by hipStreamLegacy or hipStreamPerThread.
    """

    kind: Kind
    stream: int = 0
    event: int = 0
    name: str = ""
    duration_ns: int = 0
    non_blocking: bool = False
    branches: int = 1
    device: int = 0
    waits: bool = False
    which: int = 0
    by_name: bool = False
    before_ns: int = 100
    after_ns: int = 100


HostThread = tuple[Step, ...]


@frozen
class Costs:
    """What the machine adds: between two calls of a thread, from ready to begin of work, to come back.

    ``branch_ns``: between the begins of branches of a graph, one after the other.
    """

    between_calls_ns: int = 100
    begin_ns: int = 2_000
    return_ns: int = 1_000
    branch_ns: int = 0


def function_of(kind: str, which: int, *, per_thread: bool) -> str:
    """The name under which a call is recorded; ``per_thread``: its stream 0 is the thread's own."""
    names = FUNCTIONS[kind]
    if per_thread and kind in _NAMES_STREAM:
        return names[0] + _PER_THREAD
    return names[which % len(names)]


Reason = Literal["launch", "stream", "event", "null_stream", "queue", "host"]

_EPOCH_NS: Final = 10**12
#: Odd, so that of two hardware queues the branches of a graph use both.
_QUEUES_BETWEEN_BRANCHES: Final = 101
_FIRST_HANDLE: Final = 0x55D0_0000_0000
_FIRST_EVENT: Final = 0xE000
_LEGACY_HANDLE: Final = 1
_OWN_HANDLE: Final = 2
_COPIES: Final = ("copy", "blocking_copy")
_WAITS: Final = ("sync_stream", "sync_event", "sync_device", "blocking_copy")
#: Between two queries of a thread that asks until its work has ended.
_POLL_NS: Final = 20_000


@attrs.define(eq=False)
class _Command:
    """Something that completes: work, a record, a wait in a stream, or a thread that came back."""

    blockers: list[tuple[Reason, _Command]]
    work: int | None = None
    done_ns: int = 0

    def ready_ns(self) -> int:
        return max((blocker.done_ns for _, blocker in self.blockers), default=0)


@attrs.define(eq=False)
class _Stream:
    id: int
    handle: int
    device: int
    blocking: bool
    last: _Command | None = None
    last_work: _Command | None = None


@frozen
class Work:
    """One piece of work as it ran, in ns of the recording's clock.

    ``released_by``: how the work that ended last before it held it, which needn't have been after its launch;
    "launch" if it waited for no work at all. ``call`` submitted it, by its place in the recording.
    """

    name: str
    begin_ns: int
    end_ns: int
    released_by: Reason
    call: int


@frozen
class HostWait:
    """A call that came back only when all work of ``awaited`` had ended; that work, and all before it."""

    call: int
    awaited: frozenset[int]


@frozen
class Played:
    """``after[i]``: every piece of work that had to end before work i could begin, directly or not.

    Work is numbered in the order in which calls took effect; ``recording`` has the same order.
    ``behind_others[i]``: the part of it that work i, or something before it in its stream, met as an event or
    as the null stream's other side.
    """

    recording: RecordedProgram
    work: tuple[Work, ...]
    after: tuple[frozenset[int], ...]
    behind_others: tuple[dict[Reason, frozenset[int]], ...]
    waits: tuple[HostWait, ...]

    @property
    def makespan_ns(self) -> int:
        """From the first begin to the last end."""
        return max(w.end_ns for w in self.work) - min(w.begin_ns for w in self.work)


def beside(played: Sequence[Played], machines: Sequence[str] = ()) -> Played:
    """Programs as processes of one recording: no HIP call here reaches another process.

    Each is on the machine that is given for it, all on one where none is. Handles of streams, events, threads
    and correlation ids of all are the same numbers, as they may be.
    """
    work: list[Work] = []
    after: list[frozenset[int]] = []
    behind: list[dict[Reason, frozenset[int]]] = []
    waits: list[HostWait] = []
    recorded = RecordedProgram(machines=tuple(machines) or ("node",) * len(played))

    def moved(pieces: frozenset[int], first: int) -> frozenset[int]:
        return frozenset(piece + first for piece in pieces)

    for process, one in enumerate(played):
        first, first_call = len(work), len(recorded.calls)
        work += [attrs.evolve(w, call=w.call + first_call) for w in one.work]
        after += [moved(earlier, first) for earlier in one.after]
        behind += [{way: moved(some, first) for way, some in ways.items()} for ways in one.behind_others]
        waits += [HostWait(wait.call + first_call, moved(wait.awaited, first)) for wait in one.waits]
        recorded.calls += [attrs.evolve(call, process=process) for call in one.recording.calls]
        recorded.work += [attrs.evolve(piece, process=process) for piece in one.recording.work]
        recorded.gpus = max(recorded.gpus, one.recording.gpus)
    return Played(recorded, tuple(work), tuple(after), tuple(behind), tuple(waits))


def play(threads: Sequence[HostThread], costs: Costs | None = None, *, queues: int = 0) -> Played:
    """Play all threads at once; with ``queues`` hardware queues, which their streams share in turn."""
    player = _Player(costs or Costs(), queues)
    return player.play(threads)


@attrs.define(eq=False)
class _Thread:
    number: int
    steps: list[Step]
    clock_ns: int
    waited: _Command  # all that the thread had waited for so far
    device: int = 0


class _Player:
    def __init__(self, costs: Costs, queues: int) -> None:
        self._costs, self._queues = costs, queues
        self._nulls: dict[tuple[int, int], _Stream] = {}  # by device, and thread for its own
        self._streams: dict[int, _Stream] = {}
        self._ever: list[_Stream] = []  # destroyed ones too: their work goes on
        self._free_handles: list[int] = []
        self._stream_ids = 0
        self._latest: dict[int, _Command] = {}
        self._told: dict[int, _Command] = {}
        self._listening: dict[int, list[_Thread]] = {}
        self._on_queue: dict[tuple[int, int], _Command] = {}
        self._pieces: list[_Command] = []
        self._work: list[Work] = []
        self._waits: list[tuple[int, _Command]] = []  # per wait of a thread: call, what it waited for
        self._calls: list[RecordedCall] = []
        self._placed: list[tuple[_Stream, int]] = []  # per work: stream, hardware queue

    def play(self, threads: Sequence[HostThread]) -> Played:
        pending: list[tuple[int, int]] = []
        hosts = [_Thread(i, list(steps), 0, _Command([])) for i, steps in enumerate(threads)]
        for host in hosts:
            self._plan(pending, host)
        while pending:
            _, number = heapq.heappop(pending)
            host = hosts[number]
            step = host.steps[0]
            if step.kind == "listen" and step.event not in self._told:
                self._listening.setdefault(step.event, []).append(host)
                continue
            del host.steps[0]
            self._make(host, step)
            self._plan(pending, host)
            if step.kind == "tell":
                for waiting in self._listening.pop(step.event, []):
                    waiting.clock_ns = max(waiting.clock_ns, host.clock_ns)
                    self._plan(pending, waiting)
        return self._played()

    def _plan(self, pending: list[tuple[int, int]], host: _Thread) -> None:
        if host.steps:
            step = host.steps[0]
            before_ns = step.before_ns if step.kind in FUNCTIONS else 0
            heapq.heappush(pending, (host.clock_ns + before_ns, host.number))

    def _make(self, host: _Thread, step: Step) -> None:
        if step.kind == "think":
            host.clock_ns += step.duration_ns
        elif step.kind == "tell":
            self._told[step.event] = host.waited
        elif step.kind == "listen":
            host.waited = _done(_Command([("host", host.waited), ("host", self._told[step.event])]), 0)
        else:
            begin = host.clock_ns
            effect = begin + step.before_ns
            call = self._call(host, step, begin)
            returned = self._take_effect(host, step, effect, call)
            self._calls[call] = attrs.evolve(self._calls[call], end_ns=_EPOCH_NS + returned)
            host.clock_ns = returned + self._costs.between_calls_ns
            if step.kind in POLLS and step.waits and not self._has_ended(host, step, effect):
                host.clock_ns += _POLL_NS
                host.steps.insert(0, step)

    def _call(self, host: _Thread, step: Step, begin: int) -> int:
        if step.kind == "create_stream":
            self._create(host, step)
        handle = self._stream(host, step).handle if step.kind in OF_STREAM else None
        own = step.stream == OWN_STREAM and handle is not None
        if handle is not None and step.stream <= 0:
            handle = (_OWN_HANDLE if own else _LEGACY_HANDLE) if step.by_name else 0
        function = function_of(step.kind, step.which, per_thread=own and not step.by_name)
        has_flags = step.kind == "create_stream" and function != "hipStreamCreate"
        self._calls.append(
            RecordedCall(
                function=function,
                begin_ns=_EPOCH_NS + begin,
                end_ns=0,
                correlation_id=0,
                stream=handle,
                event=_FIRST_EVENT + step.event if step.kind in OF_EVENT else None,
                flags=int(step.non_blocking) if has_flags else None,
                device=step.device if step.kind == "set_device" else None,
                thread=host.number + 1,
            )
        )
        return len(self._calls) - 1

    def _stream(self, host: _Thread, step: Step) -> _Stream:
        """The stream that a step of a thread names."""
        if step.stream > 0:
            return self._streams[step.stream]
        key = host.device, host.number if step.stream == OWN_STREAM else -1
        if key not in self._nulls:
            own = step.stream == OWN_STREAM
            self._stream_ids += own
            # A thread's own default stream and the legacy one wait for each other.
            self._nulls[key] = _Stream(self._stream_ids if own else 0, 0, host.device, blocking=own)
            self._ever.append(self._nulls[key])
        return self._nulls[key]

    def _create(self, host: _Thread, step: Step) -> None:
        self._stream_ids += 1
        # A pointer is free again as soon as its stream was destroyed.
        handle = self._free_handles.pop() if self._free_handles else _FIRST_HANDLE + 64 * self._stream_ids
        plain = function_of(step.kind, step.which, per_thread=False) == "hipStreamCreate"
        made = _Stream(self._stream_ids, handle, host.device, plain or not step.non_blocking)
        self._streams[step.stream] = made
        self._ever.append(made)

    def _take_effect(self, host: _Thread, step: Step, effect: int, call: int) -> int:
        """What the call does at ``effect``; when it returns."""
        if step.kind == "set_device":
            host.device = step.device
            return effect + step.after_ns
        stream = self._stream(host, step if step.kind in OF_STREAM else attrs.evolve(step, stream=0))
        if step.kind == "graph":
            self._submit_graph(host, step, stream, effect, call)
        elif step.kind in WORK:
            stream.last = stream.last_work = self._submit(host, step, stream, effect, call, stream.id)
        elif step.kind == "host_function":
            stream.last = self._mark(host, stream, effect)
            stream.last.done_ns += step.duration_ns
        elif step.kind == "record":
            self._latest[step.event] = self._mark(host, stream, effect)
        elif step.kind == "wait":
            recorded = self._latest.get(step.event)
            self._mark(host, stream, effect, recorded)
        elif step.kind == "destroy_stream":
            self._free_handles.append(self._streams.pop(step.stream).handle)
        elif step.kind == "destroy_event":
            self._latest.pop(step.event, None)
        if step.kind in POLLS and not (step.waits and self._has_ended(host, step, effect)):
            return effect + step.after_ns
        if step.waits or step.kind in _WAITS:
            awaited = _done(_Command([("host", one) for one in self._awaited(step, stream)]), effect)
            self._waits.append((call, awaited))
            host.waited = _done(_Command([("host", awaited), ("host", host.waited)]), effect)
            return max(effect, host.waited.ready_ns()) + self._costs.return_ns
        return effect + step.after_ns

    def _has_ended(self, host: _Thread, step: Step, when: int) -> bool:
        """Whether a query that takes effect then succeeds."""
        stream = self._stream(host, attrs.evolve(step, stream=step.stream if step.kind in OF_STREAM else 0))
        return all(command.done_ns <= when for command in self._awaited(step, stream))

    def _awaited(self, step: Step, stream: _Stream) -> Iterable[_Command]:
        if step.kind in ("sync_event", "query_event"):
            return [self._latest[step.event]] if step.event in self._latest else []
        if step.kind in ("sync_device", "free"):
            return [s.last for s in self._beside(stream) if s.last is not None]
        # Of the null stream the header says that it waits for others too, the guide that it does not.
        waits_beside = stream.id == 0 and step.kind == "sync_stream"
        beside = [s.last_work for s in self._beside(stream) if s.blocking] if waits_beside else []
        return [command for command in (stream.last, *beside) if command is not None]

    def _beside(self, stream: _Stream) -> list[_Stream]:
        """All streams that its device ever had."""
        return [other for other in self._ever if other.device == stream.device]

    def _mark(
        self, host: _Thread, stream: _Stream, effect: int, recorded: _Command | None = None
    ) -> _Command:
        blockers: list[tuple[Reason, _Command]] = [("host", host.waited)]
        if stream.last is not None:
            blockers.append(("stream", stream.last))
        if recorded is not None:
            blockers.append(("event", recorded))
        stream.last = _done(_Command(blockers), effect)
        return stream.last

    def _submit_graph(self, host: _Thread, step: Step, stream: _Stream, effect: int, call: int) -> None:
        """Branches on queues of their own; what comes behind waits for all of them."""
        branches: list[tuple[Reason, _Command]] = []
        for number in range(step.branches):
            branch = attrs.evolve(
                step, name=f"{step.name}/{number}", duration_ns=step.duration_ns // (number + 1)
            )
            queue = stream.id + number * _QUEUES_BETWEEN_BRANCHES
            late = number * self._costs.branch_ns
            branches.append(("stream", self._submit(host, branch, stream, effect, call, queue, late)))
        stream.last = stream.last_work = _done(_Command(branches), effect)

    def _submit(
        self, host: _Thread, step: Step, stream: _Stream, effect: int, call: int, queue: int, late: int = 0
    ) -> _Command:
        """One piece of work behind what the stream has so far."""
        blockers: list[tuple[Reason, _Command]] = [("stream", stream.last)] if stream.last else []
        beside = [s for s in self._beside(stream) if (s.blocking if stream.id == 0 else s.id == 0)]
        if stream.id == 0 or stream.blocking:
            # Of the null stream's wait the documentation speaks for work, not for records and waits.
            blockers += [("null_stream", s.last_work) for s in beside if s.last_work is not None]
        queue = queue % self._queues if self._queues else queue
        hardware = stream.device, queue
        if self._queues and step.kind not in _COPIES and hardware in self._on_queue:
            blockers.append(("queue", self._on_queue[hardware]))
        blockers.append(("host", host.waited))
        command = _Command(blockers, work=len(self._work))
        begin = max(effect, command.ready_ns()) + self._costs.begin_ns + late
        command.done_ns = begin + step.duration_ns
        times = _EPOCH_NS + begin, _EPOCH_NS + command.done_ns
        self._work.append(Work(step.name, *times, "launch", call))
        self._pieces.append(command)
        self._placed.append((stream, -1 if step.kind in _COPIES else queue))
        if step.kind not in _COPIES:
            self._on_queue[hardware] = command
        return command

    def _played(self) -> Played:
        # Ids count the calls in the order in which they were made.
        order = sorted(range(len(self._calls)), key=lambda call: (self._calls[call].begin_ns, call))
        number = {call: i for i, call in enumerate(order)}
        calls = [attrs.evolve(self._calls[call], correlation_id=number[call] + 1) for call in order]
        recorded = [
            RecordedWork(
                name=ran.name,
                begin_ns=ran.begin_ns,
                end_ns=ran.end_ns,
                stream=stream.id,
                queue=max(queue, 0),
                gpu=stream.device,
                process=0,
                correlation_id=number[ran.call] + 1,
                is_copy=queue < 0,
            )
            for ran, (stream, queue) in zip(self._work, self._placed, strict=True)
        ]
        gpus = 1 + max((one.gpu for one in recorded), default=0)
        before: dict[_Command, frozenset[int]] = {}
        after = [_work_before(command, before) for command in self._pieces]
        waits = [HostWait(number[call], _work_before(awaited, before)) for call, awaited in self._waits]
        work = [
            attrs.evolve(ran, call=number[ran.call], released_by=_released_by(command, before))
            for ran, command in zip(self._work, self._pieces, strict=True)
        ]
        recording = RecordedProgram(gpus=gpus, calls=calls, work=recorded)
        behind: list[dict[Reason, frozenset[int]]] = [
            {way: _behind(command, way, before, {}) for way in ("event", "null_stream")}
            for command in self._pieces
        ]
        return Played(recording, tuple(work), tuple(after), tuple(behind), tuple(waits))


def _done(command: _Command, effect: int) -> _Command:
    command.done_ns = max(effect, command.ready_ns())
    return command


def _work_before(command: _Command, known: dict[_Command, frozenset[int]]) -> frozenset[int]:
    """Work that ``command`` waits for. Blockers are older than what they block, so their sets are known."""
    pending = [command]
    while pending:
        top = pending[-1]
        missing = [blocker for _, blocker in top.blockers if blocker not in known]
        if missing:
            pending += missing
            continue
        found = [known[blocker] for _, blocker in top.blockers]
        own = [frozenset([blocker.work]) for _, blocker in top.blockers if blocker.work is not None]
        known[pending.pop()] = frozenset().union(*found, *own)
    return known[command]


def _released_by(command: _Command, before: dict[_Command, frozenset[int]]) -> Reason:
    """How the work that ended last before ``command`` held it: the first step of that way that is no FIFO's.

    A stream's marks (records, waits, host functions) pass on what held them.
    """
    while any(_behind_work(blocker, before) for _, blocker in command.blockers):
        reason, last = max(
            ((reason, one) for reason, one in command.blockers if _behind_work(one, before)),
            key=lambda held: held[1].done_ns,
        )
        if reason != "stream" or last.work is not None:
            return reason
        command = last
    return "launch"


def _behind_work(command: _Command, before: dict[_Command, frozenset[int]]) -> bool:
    return command.work is not None or bool(_work_before(command, before))


def _behind(
    command: _Command,
    way: Reason,
    before: dict[_Command, frozenset[int]],
    known: dict[_Command, frozenset[int]],
) -> frozenset[int]:
    """Work behind which ``command``, or what its stream holds before it, stands by one way."""
    if command not in known:
        found: frozenset[int] = frozenset()
        for reason, blocker in command.blockers:
            if reason == way:
                own = [] if blocker.work is None else [blocker.work]
                found |= _work_before(blocker, before) | frozenset(own)
            elif reason == "stream":
                found |= _behind(blocker, way, before, known)
        known[command] = found
    return known[command]
