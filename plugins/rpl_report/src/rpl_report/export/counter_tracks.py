"""Hardware counters along the timeline: what the dispatches that run at a time counted, as steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]
    Float64Column = NDArray[np.float64]

__all__ = ["MOST_STEPS", "CounterTrack", "counter_tracks", "describe_counters"]

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
