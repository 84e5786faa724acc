"""``perfetto``: a trace for ui.perfetto.dev: streams by process, host threads, counters, critical path,
idle time of each GPU.

Tracks and names are messages of the perfetto package; slices, of which there are millions, are stamped
from one message per kind (``stamp_messages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rpl_analysis.execution_graph.results.time_spent import IDLE_CAUSES
from rpl_analysis.phases import ranges_by_name
from rpl_core.text.safety import encodable, printable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.export.perfetto_tracks import (
    ProcessTrack,
    SliceTrack,
    api_tracks,
    counter_tracks,
    describe_counters,
    idle_tracks,
    path_track,
    process_tracks,
    range_tracks,
    stream_tracks,
    track_categories,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column
    from rpl_report.export.perfetto_tracks import CounterTrack
    from rpl_report.timeline.work import TimedWork

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
    ends = _ends(messages, columns["end_ns"], track, width)
    parts = [_Events(columns["end_ns"], np.arange(track.size) * 2 + 1, ends)]
    for with_row in (True, False):
        for with_flow in (True, False):
            chosen = np.flatnonzero(
                ((columns["row"] >= 0) == with_row) & ((columns["flow"] > 0) == with_flow)
            )
            if chosen.size:
                own = {name: column[chosen] for name, column in columns.items()}
                encoded = _begins(messages, own, track[chosen], category[chosen], work, width)
                parts.append(_Events(own["begin_ns"], chosen * 2, encoded))
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


def _ends(messages: Any, end_ns: Int64Column, track: Int64Column, width: int) -> NDArray[np.uint8]:
    trace, event, stamps = _prototype(messages, width)
    event.type = messages.TrackEvent.TYPE_SLICE_END
    return stamp_messages(trace, stamps(end_ns, track))


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
        _stamp_flow(messages_of_kind, trace.SerializeToString(), columns["flow"])
    return messages_of_kind


def _arguments(event: Any, rows: Int64Column, work: TimedWork) -> dict[tuple[int, int], Int64Column]:
    nodes = work.nodes
    identity = np.zeros(rows.size, dtype=np.int64)
    own = ~nodes.is_copy[rows]
    identity[own] = np.maximum(work.trace.dispatches.dispatch_id[nodes.row[rows[own]]], 0)
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


def _stamp_flow(encoded: NDArray[np.uint8], prototype: bytes, flow: Int64Column) -> None:
    """Flow ids are of fixed size, little-endian."""
    at = prototype.index(_FLOW.to_bytes(8, "little"))
    encoded[:, at : at + 8] = np.ascontiguousarray(flow.astype("<u8")).view(np.uint8).reshape(-1, 8)


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
        own = start[first : first + part.time_ns.size]
        for i in range(part.encoded.shape[1]):
            out[own + i] = part.encoded[:, i]
        first += part.time_ns.size
    return out.tobytes()
