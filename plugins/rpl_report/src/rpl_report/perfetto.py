"""``perfetto``: a trace for ui.perfetto.dev: streams by process, host threads, counters, critical path,
idle time of each GPU.

Tracks and names are messages of the perfetto package; slices, of which there are millions, are stamped
from one message per kind (``stamp_messages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rpl_analysis.execution_graph.results.time_spent import IDLE_CAUSES
from rpl_analysis.phases import ranges_by_name
from rpl_analysis.ranks.report import rank_keys
from rpl_core.model.metric import SYNTHETIC_COMMAND_MARK
from rpl_core.text import counted, encodable, printable
from rpl_core.values import frozen
from rpl_report.rows import path_intervals, work_tracks
from rpl_report.timeline.lanes import nested_ranges, split_overlaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_analysis.phases import Place
    from rpl_core.model.trace import ApiCalls, Float64Column, Trace
    from rpl_report.rows import WorkTrack
    from rpl_report.timeline.lanes import TimedWork

    Int64Column = NDArray[np.int64]

_BITS = 7


# Protobuf messages by the million: one message laid out by the library, its numbers stamped in as columns. A
# varint may be longer than it needs to be (protobuf.dev, "Encoding": readers take up to 10 bytes), so all
# messages of a kind get the same length, and numpy fills in what differs.


class Serialisable(Protocol):
    """A protobuf message."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name


def varint_width(largest: int) -> int:
    """Bytes of a varint that holds values up to ``largest`` (>= 0).

    At least 2: a placeholder of one byte could occur anywhere in a message.
    """
    return max(2, -(-largest.bit_length() // _BITS))


def placeholder(width: int, number: int) -> int:
    """A value whose varint takes ``width`` bytes and that nothing else has; ``number`` is 1 to 31."""
    return (1 << (_BITS * width)) - 1 - number


def stamp_messages(
    prototype: Serialisable, columns: Mapping[tuple[int, int], NDArray[np.integer]]
) -> NDArray[np.uint8]:
    """Serialised copies of ``prototype``, shape (n, bytes), with its placeholders replaced.

    ``columns`` maps (width, number) of a placeholder to its values (n,), which must not be negative. Raises
    ``ValueError`` for a placeholder that the prototype does not hold exactly once.
    """
    raw = prototype.SerializeToString()
    count = len(next(iter(columns.values())))
    messages = np.broadcast_to(np.frombuffer(raw, dtype=np.uint8), (count, len(raw))).copy()
    for (width, number), values in columns.items():
        wanted = _varint(placeholder(width, number))
        if raw.count(wanted) != 1:
            raise ValueError(
                f"placeholder {number} of {width} bytes occurs {counted(raw.count(wanted), 'time')}"
            )
        at = raw.index(wanted)
        _stamp(messages[:, at : at + width], values)
    stamped: NDArray[np.uint8] = messages
    return stamped


def _stamp(place: NDArray[np.uint8], values: NDArray[np.integer]) -> None:
    width = place.shape[1]
    left = values.astype(np.uint64)
    for i in range(width):
        place[:, i] = (left & np.uint64(0x7F)).astype(np.uint8) | np.uint8(0x80 if i < width - 1 else 0)
        left >>= np.uint64(_BITS)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= _BITS
    out.append(value)
    return bytes(out)


_SEQUENCE = 1
_FIRST_PROCESS = 1 << 20
_FIRST_TRACK = 1 << 21


def to_perfetto(work: TimedWork, counters: Mapping[str, Float64Column] | None = None) -> bytes:
    """A serialised ``perfetto.protos.Trace``.

    Times are as recorded on one machine; on several each begins at 0, since their clocks do not compare.
    ``counters`` are values per dispatch of the trace, NaN where unknown.
    """
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

    shift = work.origin_ns if len(work.machines) > 1 else np.minimum(work.origin_ns, 0)
    functions = work.trace.api_functions
    tracks = [path_track(work, shift), *stream_tracks(work, shift)]
    tracks += api_tracks(work, shift, len(work.nodes.symbol_names))
    ranges = ranges_by_name(work.trace)
    tracks += range_tracks(work, ranges, shift, len(work.nodes.symbol_names) + len(functions))
    recorded = (*work.nodes.symbol_names, *functions, *ranges)
    tracks += idle_tracks(work, shift, len(recorded))
    causes = [f"idle: {cause}" for cause in IDLE_CAUSES]
    names = [*(printable(encodable(name)) for name in recorded), *causes]
    counted, left_out = counter_tracks(work, counters or {}, shift)
    head = _head(messages, work, tracks, names)
    described = describe_counters(messages, counted, _FIRST_TRACK + len(tracks), _FIRST_PROCESS, left_out)
    events = [*_slices(messages, tracks, work), *_counter_events(messages, counted, len(tracks))]
    return head + described + _joined(events)


def _head(messages: Any, work: TimedWork, tracks: Sequence[SliceTrack], names: Sequence[str]) -> bytes:
    """Descriptors of all tracks, and the names of all slices."""
    trace = messages.Trace()
    processes = process_tracks(work)
    for process in processes:
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_descriptor.uuid = _FIRST_PROCESS + process.number
        packet.track_descriptor.process.pid = process.pid & 0x7FFF_FFFF
        packet.track_descriptor.process.process_name = process.name
    for number, track in enumerate(tracks):
        _describe(trace.packet.add().track_descriptor, number, track, processes)
    interned = trace.packet.add()
    interned.trusted_packet_sequence_id = _SEQUENCE
    interned.sequence_flags = messages.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    for number, name in enumerate(names):
        interned.interned_data.event_names.add(iid=number + 1, name=name)
    for number, category in enumerate(track_categories(work.trace)):
        interned.interned_data.event_categories.add(iid=number + 1, name=category)
    for number, argument in enumerate(_ARGUMENTS):
        interned.interned_data.debug_annotation_names.add(iid=number + 1, name=argument)
    return bytes(trace.SerializeToString())


_ARGUMENTS = ("dispatch_id", "slack_ns", "on_critical_path")


def _describe(descriptor: Any, number: int, track: SliceTrack, processes: Sequence[ProcessTrack]) -> None:
    descriptor.uuid = _FIRST_TRACK + number
    descriptor.name = track.label
    if track.process is None:
        return
    descriptor.parent_uuid = _FIRST_PROCESS + track.process
    if track.thread is not None:
        descriptor.thread.pid = processes[track.process].pid & 0x7FFF_FFFF
        descriptor.thread.tid = track.thread & 0x7FFF_FFFF
        descriptor.thread.thread_name = track.label


@frozen(eq=False)
class _Events:
    """Begins or ends of slices of one shape, with the place of each in the file."""

    time_ns: Int64Column
    place: Int64Column
    encoded: NDArray[np.uint8]


def _slices(messages: Any, tracks: Sequence[SliceTrack], work: TimedWork) -> list[_Events]:
    """Begin and end of every slice by time; at equal times in the order of its track."""
    columns = {
        name: np.concatenate([getattr(track, name) for track in tracks])
        for name in ("begin_ns", "end_ns", "name", "row", "flow")
    }
    track = np.repeat(np.arange(len(tracks)), [track.row.size for track in tracks])
    categories = track_categories(work.trace)
    category = np.array([categories.index(t.category) for t in tracks])[track]
    width = varint_width(int(columns["end_ns"].max(initial=0)))
    end_ns = columns["end_ns"]
    trace, event, stamps = _prototype(messages, width)
    event.type = messages.TrackEvent.TYPE_SLICE_END
    ends = stamp_messages(trace, stamps(end_ns, track))
    parts = [_Events(columns["end_ns"], np.arange(track.size) * 2 + 1, ends)]
    for with_row in (True, False):
        for with_flow in (True, False):
            chosen = np.flatnonzero(
                ((columns["row"] >= 0) == with_row) & ((columns["flow"] > 0) == with_flow)
            )
            if chosen.size:
                of_track = {name: column[chosen] for name, column in columns.items()}
                encoded = _begins(messages, of_track, track[chosen], category[chosen], work, width)
                parts.append(_Events(of_track["begin_ns"], chosen * 2, encoded))
    return parts


def _counter_events(messages: Any, tracks: Sequence[CounterTrack], first_track: int) -> list[_Events]:
    """Steps of counters come behind the slices of the same time."""
    if not tracks:
        return []
    time = np.concatenate([track.time_ns for track in tracks])
    number = np.repeat(np.arange(len(tracks)) + first_track, [track.time_ns.size for track in tracks])
    trace, event, stamps = _prototype(messages, varint_width(int(time.max(initial=0))))
    event.type = messages.TrackEvent.TYPE_COUNTER
    event.double_counter_value = _VALUE
    encoded = stamp_messages(trace, stamps(time, number))
    at = trace.SerializeToString().index(np.float64(_VALUE).tobytes())
    values = np.concatenate([track.value for track in tracks]).astype("<f8")
    encoded[:, at : at + 8] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)
    return [_Events(time, np.arange(time.size) + _BEHIND, encoded)]


def _begins(
    messages: Any,
    columns: dict[str, Int64Column],
    track: Int64Column,
    category: Int64Column,
    work: TimedWork,
    width: int,
) -> NDArray[np.uint8]:
    """All of them have work nodes and flows, or none has."""
    trace, event, stamps = _prototype(messages, width)
    event.type = messages.TrackEvent.TYPE_SLICE_BEGIN
    names = varint_width(int(columns["name"].max(initial=0)) + 1)
    event.name_iid = placeholder(names, 3)
    event.category_iids.append(placeholder(2, 4))
    stamped = stamps(columns["begin_ns"], track)
    stamped |= {(names, 3): columns["name"] + 1, (2, 4): category + 1}
    if columns["row"][0] >= 0:
        stamped |= _arguments(event, columns["row"], work)
    if columns["flow"][0] > 0:
        event.flow_ids.append(_FLOW)
    messages_of_kind = stamp_messages(trace, stamped)
    if columns["flow"][0] > 0:
        # Flow ids are of fixed size, little-endian.
        flow = columns["flow"]
        at = trace.SerializeToString().index(_FLOW.to_bytes(8, "little"))
        messages_of_kind[:, at : at + 8] = (
            np.ascontiguousarray(flow.astype("<u8")).view(np.uint8).reshape(-1, 8)
        )
    return messages_of_kind


def _arguments(event: Any, rows: Int64Column, work: TimedWork) -> dict[tuple[int, int], Int64Column]:
    nodes = work.nodes
    identity = np.zeros(rows.size, dtype=np.int64)
    is_kernel = ~nodes.is_copy[rows]
    identity[is_kernel] = np.maximum(work.trace.dispatches.dispatch_id[nodes.row[rows[is_kernel]]], 0)
    values = (identity, work.slack_ns[rows], work.on_path()[rows].astype(np.int64))
    stamped = {}
    for number, column in enumerate(values):
        width = varint_width(int(column.max(initial=0)))
        annotation = event.debug_annotations.add(name_iid=number + 1)
        annotation.uint_value = placeholder(width, 8 + number)
        stamped[width, 8 + number] = column
    return stamped


_FLOW = 0x7EDC_BA98_7654_3210
#: Stands for a counter's value: no other eight bytes of a message are these.
_VALUE = 1.2345678912345678e300
_BEHIND = 1 << 62


def _prototype(messages: Any, width: int) -> tuple[Any, Any, Any]:
    """A trace of one packet, its event, and how time and track are stamped into it."""
    trace = messages.Trace()
    packet = trace.packet.add()
    packet.timestamp = placeholder(width, 1)
    packet.trusted_packet_sequence_id = _SEQUENCE
    packet.sequence_flags = messages.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    packet.track_event.track_uuid = placeholder(4, 2)

    def stamps(time_ns: Int64Column, track: Int64Column) -> dict[tuple[int, int], Int64Column]:
        return {(width, 1): time_ns, (4, 2): track + _FIRST_TRACK}

    return trace, packet.track_event, stamps


def _joined(parts: Sequence[_Events]) -> bytes:
    """All events by (time, place), as bytes."""
    time = np.concatenate([part.time_ns for part in parts])
    place = np.concatenate([part.place for part in parts])
    length = np.concatenate([np.full(part.time_ns.size, part.encoded.shape[1]) for part in parts])
    order = np.lexsort((place, time))
    end = np.cumsum(length[order])
    start = np.empty_like(end)
    start[order] = end - length[order]
    out = np.zeros(int(end[-1]) if end.size else 0, dtype=np.uint8)
    first = 0
    for part in parts:
        begins = start[first : first + part.time_ns.size]
        for i in range(part.encoded.shape[1]):
            out[begins + i] = part.encoded[:, i]
        first += part.time_ns.size
    return out.tobytes()


# What goes on which track of a Perfetto trace, before it is encoded: columns of slices.


#: Further counters are left out: a file of more steps than this is slow to look at (chosen).
MOST_STEPS = 2**22


@frozen(eq=False)
class CounterTrack:
    """``value[i]`` holds from ``time_ns[i]`` to the next; times ascend strictly."""

    label: str
    process: int
    time_ns: Int64Column
    value: Float64Column


def counter_tracks(
    work: TimedWork, counters: Mapping[str, Float64Column], shift_ns: Int64Column
) -> tuple[list[CounterTrack], int]:
    """One track per counter and process, and how many counters found no room.

    ``counters`` are per dispatch of the trace; ``shift_ns`` (machines,) is taken off all times. Values come
    from the counter passes, so they say what a dispatch does and not when within it.
    """
    nodes = work.nodes
    rows = np.flatnonzero(~nodes.is_copy)
    shift = shift_ns[work.machine[rows]]
    begin, end = nodes.begin_ns[rows] - shift, nodes.end_ns[rows] - shift
    process = nodes.process[rows]
    tracks: list[CounterTrack] = []
    steps = 0
    for number, (name, column) in enumerate(counters.items()):
        value = column[nodes.row[rows]]
        known = ~np.isnan(value) & (end > begin)
        steps += 2 * int(known.sum())
        if steps > MOST_STEPS:
            return tracks, len(counters) - number
        for process_number in np.unique(process[known]).tolist():
            chosen = known & (process == process_number)
            time, height = _steps(begin[chosen], end[chosen], value[chosen])
            tracks.append(CounterTrack(f"{name} (counter passes)", process_number, time, height))
    return tracks, 0


def describe_counters(
    messages: Any, tracks: Sequence[CounterTrack], first_track: int, first_process: int, left_out: int
) -> bytes:
    """Descriptors of the tracks as packets of a Perfetto trace, and a word about counters without one."""
    trace = messages.Trace()
    for number, track in enumerate(tracks):
        descriptor = trace.packet.add().track_descriptor
        descriptor.uuid = first_track + number
        descriptor.parent_uuid = first_process + track.process
        descriptor.name = track.label
        descriptor.counter.unit = messages.CounterDescriptor.UNIT_COUNT
    if left_out:
        descriptor = trace.packet.add().track_descriptor
        descriptor.uuid = first_track + len(tracks)
        descriptor.name = f"{counted(left_out, 'more counter')} left out: too many dispatches"
    return bytes(trace.SerializeToString())


def _steps(
    begin_ns: Int64Column, end_ns: Int64Column, value: Float64Column
) -> tuple[Int64Column, Float64Column]:
    """The sum over the intervals (n,) that hold at a time, as its changes."""
    time, at = np.unique(np.concatenate([begin_ns, end_ns]), return_inverse=True)
    change = np.bincount(at.reshape(-1), weights=np.concatenate([value, -value]), minlength=time.size)
    running = np.bincount(at.reshape(-1), weights=np.repeat([1.0, -1.0], begin_ns.size), minlength=time.size)
    # Where nothing runs the sum is zero, whatever rounding left of it.
    return time, np.where(np.cumsum(running) > 0, np.cumsum(change), 0.0)


@frozen
class ProcessTrack:
    number: int  # index into the trace's processes
    pid: int
    name: str


@frozen(eq=False, kw_only=True)
class SliceTrack:
    """Disjoint slices, ascending by begin. ``name`` indexes a table of names that the encoder gets too.

    ``row`` is the work node of each slice (-1: none), ``flow`` an id that a launch and what it launched share
    (0: none). ``process`` is None for tracks of their own; ``thread`` is an OS thread id.
    """

    label: str
    process: int | None
    category: str
    begin_ns: Int64Column
    end_ns: Int64Column
    name: Int64Column
    row: Int64Column
    flow: Int64Column
    thread: int | None = None


def process_tracks(work: TimedWork) -> list[ProcessTrack]:
    """Processes are named after their program alone: arguments may hold what nobody wants to publish.

    The mark of synthetic recordings stays. Of several ranks the names begin with their numbers, those of
    ``profile.json``.
    """
    _, keys = rank_keys(work.trace, work.nodes)
    ranks: dict[int, list[str]] = {}
    for rank, (owner, _) in enumerate(keys if len(keys) > 1 else ()):
        ranks.setdefault(owner, []).append(str(rank))
    tracks = []
    for number, process in enumerate(work.trace.processes):
        command = process.command or ""
        plain = command.removeprefix(SYNTHETIC_COMMAND_MARK)
        words = plain.split()
        program = PurePath(words[0]).name if words else ""
        if plain != command:
            program = f"{program} [synthetic]".lstrip()
        if listed := ranks.get(number):
            program = f"{'rank' if len(listed) == 1 else 'ranks'} {', '.join(listed)} · {program}".rstrip(
                " ·"
            )
        tracks.append(ProcessTrack(number, process.pid, printable(encodable(program))))
    return tracks


def path_track(work: TimedWork, shift_ns: Int64Column) -> SliceTrack:
    """The critical path."""
    rows = work.path_rows
    begin, end = path_intervals(work)
    shift = shift_ns[work.machine[rows]]
    return SliceTrack(
        label="Critical path",
        process=None,
        category="critical path",
        begin_ns=begin - shift,
        end_ns=end - shift,
        name=work.nodes.symbol[rows].astype(np.int64),
        row=rows,
        flow=np.zeros(rows.size, dtype=np.int64),
    )


def stream_tracks(work: TimedWork, shift_ns: Int64Column) -> list[SliceTrack]:
    """One track per stream. ``shift_ns`` (machines,) is taken off all times."""
    return [_stream_track(work, track, shift_ns) for track in work_tracks(work)]


def _stream_track(work: TimedWork, track: WorkTrack, shift_ns: Int64Column) -> SliceTrack:
    nodes, rows = work.nodes, track.rows
    shift = shift_ns[work.machine[rows]]
    return SliceTrack(
        label=track.label,
        process=track.process,
        category="gpu",
        begin_ns=nodes.begin_ns[rows] - shift,
        end_ns=nodes.end_ns[rows] - shift,
        name=nodes.symbol[rows].astype(np.int64),
        row=rows,
        flow=_flow(nodes.process[rows], nodes.correlation_id[rows]),
    )


def _flow(process: NDArray[np.integer], correlation_id: Int64Column) -> Int64Column:
    """Correlation ids count per process; 40 bits of them and 20 of processes make an id of the trace."""
    known = (correlation_id > 0) & (correlation_id < 1 << 40) & (process < 1 << 20)
    return np.where(known, (process.astype(np.int64) << 40) + correlation_id, 0)


def idle_tracks(work: TimedWork, shift_ns: Int64Column, first_name: int) -> list[SliceTrack]:
    """One track per GPU that idled between its work, its slices named by what the idle time is blamed on.

    ``first_name`` is added to the number of the cause.
    """
    tracks = []
    for idle in work.idle:
        intervals, count = idle.intervals, idle.intervals.node.size
        if not count:
            continue
        gpu = "GPU unknown" if idle.agent < 0 else f"GPU {work.trace.agents[idle.agent].index}"
        where = f" of {printable(encodable(work.machines[idle.machine]))}" if len(work.machines) > 1 else ""
        users = np.unique(work.nodes.process[work.nodes.agent == idle.agent])
        tracks.append(
            SliceTrack(
                label=f"{gpu}{where} · idle",
                process=int(users[0]) if users.size == 1 else None,
                category="idle",
                begin_ns=intervals.begin_ns - shift_ns[idle.machine],
                end_ns=intervals.end_ns - shift_ns[idle.machine],
                name=intervals.cause + first_name,
                row=np.full(count, -1, dtype=np.int64),
                flow=np.zeros(count, dtype=np.int64),
            )
        )
    return tracks


def track_categories(trace: Trace) -> tuple[str, ...]:
    """All that slices of this recording may have."""
    return "gpu", "critical path", "range", "idle", _api_name(trace).lower()


def _api_name(trace: Trace) -> str:
    return trace.host_api.name if trace.host_api else "API"


def api_tracks(work: TimedWork, shift_ns: Int64Column, first_name: int) -> list[SliceTrack]:
    """One track per host thread; ``first_name`` is added to the number of the function."""
    calls = work.trace.api_calls
    if calls is None or not len(calls):
        return []
    usable = np.flatnonzero(calls.end_ns >= calls.begin_ns)
    key = np.lexsort((calls.begin_ns[usable], calls.thread_id[usable], calls.process[usable]))
    rows = usable[key]
    changes = (np.diff(calls.thread_id[rows]) != 0) | (np.diff(calls.process[rows]) != 0)
    tracks = []
    for part in np.split(rows, np.flatnonzero(changes) + 1):
        tracks += _thread_tracks(work, calls, part, shift_ns, first_name)
    return tracks


def range_tracks(
    work: TimedWork, ranges: Mapping[str, Sequence[Place]], shift_ns: Int64Column, first_name: int
) -> list[SliceTrack]:
    """The ranges that the application marked, per thread; those inside others lie below them."""
    return [
        SliceTrack(
            label=lane.label(),
            process=lane.process,
            category="range",
            begin_ns=lane.begin_ns - int(shift_ns[lane.machine]),
            end_ns=lane.end_ns - int(shift_ns[lane.machine]),
            name=lane.name + first_name,
            row=np.full(lane.name.size, -1, dtype=np.int64),
            flow=np.zeros(lane.name.size, dtype=np.int64),
        )
        for lane in nested_ranges(work, ranges)
    ]


def _machine(work: TimedWork, process: int) -> int:
    return work.machines.index(work.trace.processes[process].node) if len(work.machines) > 1 else 0


def _thread_tracks(
    work: TimedWork, calls: ApiCalls, rows: Int64Column, shift_ns: Int64Column, first_name: int
) -> list[SliceTrack]:
    process, thread = int(calls.process[rows[0]]), int(calls.thread_id[rows[0]])
    api = _api_name(work.trace)
    shift = int(shift_ns[_machine(work, process)])
    tracks = []
    for number, part in enumerate(split_overlaps(calls.begin_ns[rows], calls.end_ns[rows])):
        of_thread = rows[part]
        label = f"{api} calls of thread {thread}"
        tracks.append(
            SliceTrack(
                label=label if number == 0 else f"{label} (overlapping {number})",
                process=process,
                thread=thread if number == 0 else None,
                category=api.lower(),
                begin_ns=calls.begin_ns[of_thread] - shift,
                end_ns=calls.end_ns[of_thread] - shift,
                name=calls.function[of_thread].astype(np.int64) + first_name,
                row=np.full(of_thread.size, -1, dtype=np.int64),
                flow=_flow(calls.process[of_thread], calls.correlation_id[of_thread]),
            )
        )
    return tracks
