"""What goes on which track of a Perfetto trace, before it is encoded: columns of slices."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_analysis.ranks.report import rank_keys
from rpl_core.model.origin import SYNTHETIC_COMMAND_MARK
from rpl_core.text.safety import encodable, printable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.export.source import path_intervals, work_tracks
from rpl_report.timeline.lanes import nested_ranges, split_overlaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]
    Float64Column = NDArray[np.float64]
    from rpl_analysis.phases import Place
    from rpl_core.model.trace import ApiCalls, Trace
    from rpl_report.export.source import WorkTrack

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
        for own in np.unique(process[known]).tolist():
            chosen = known & (process == own)
            time, height = _steps(begin[chosen], end[chosen], value[chosen])
            tracks.append(CounterTrack(f"{name} (counter passes)", own, time, height))
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
        if own := ranks.get(number):
            program = f"{'rank' if len(own) == 1 else 'ranks'} {', '.join(own)} · {program}".rstrip(" ·")
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
        own = rows[part]
        label = f"{api} calls of thread {thread}"
        tracks.append(
            SliceTrack(
                label=label if number == 0 else f"{label} (overlapping {number})",
                process=process,
                thread=thread if number == 0 else None,
                category=api.lower(),
                begin_ns=calls.begin_ns[own] - shift,
                end_ns=calls.end_ns[own] - shift,
                name=calls.function[own].astype(np.int64) + first_name,
                row=np.full(own.size, -1, dtype=np.int64),
                flow=_flow(calls.process[own], calls.correlation_id[own]),
            )
        )
    return tracks
