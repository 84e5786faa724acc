"""What is exported: one timing run, its work as tracks for viewers, and as rows for csv and parquet."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_analysis.execution_graph.results.time_spent import IDLE_CAUSES
from rpl_core.errors import BadDataError, MissingError
from rpl_core.text import encodable, readable
from rpl_core.values import frozen
from rpl_report.timeline.lanes import identify_lane, split_overlaps, timed_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.device import Architecture
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Float64Column
    from rpl_report.timeline.lanes import TimedWork

    Int64Column = NDArray[np.int64]
    Cells = Sequence[str | int | float | None]


@frozen(eq=False)
class ExportedRun:
    """A timing run with path and slack, the recording that it is from, and what is known of its GPU."""

    work: TimedWork
    recording: Recording
    architecture: Architecture | None = None

    def counters(self) -> Mapping[str, Float64Column]:
        """Values of the counter passes per dispatch of the timing run, NaN where none was read."""
        from rpl_analysis.counters.join import counters_by_dispatch

        return counters_by_dispatch(self.recording, self.work.trace, self.architecture)


def exported_run(recording: Recording, architecture: Callable[[str], Architecture | None]) -> ExportedRun:
    """Dispatches and copies with path and slack. Raises ``BadDataError`` if nothing was timed."""
    chosen = median_run(recording)
    work = timed_work(chosen[1], with_idle=True) if chosen else None
    if work is None:
        raise BadDataError(
            f"there is nothing to export: {why_no_graph(recording)}",
            next_step="record a kernel trace without counters",
        )
    recorded = {agent.architecture for agent in recording.gpu_agents if agent.architecture}
    return ExportedRun(work, recording, architecture(recorded.pop()) if len(recorded) == 1 else None)


# Viewers draw an interval inside another one as its callee; kernels that run at once are none of each
# other's, so a lane whose nodes overlap gets more than one track.


@frozen(eq=False)
class WorkTrack:
    """``rows`` of work nodes, ascending by begin, without overlap. ``process`` indexes the trace's."""

    label: str
    process: int
    rows: Int64Column


def work_tracks(work: TimedWork) -> list[WorkTrack]:
    """All nodes, by lane."""
    nodes = work.nodes
    by_lane = np.argsort(nodes.lane, kind="stable")
    bounds = np.searchsorted(nodes.lane[by_lane], np.arange(len(nodes.lanes) + 1))
    tracks = []
    for lane in range(len(nodes.lanes)):
        rows = by_lane[bounds[lane] : bounds[lane + 1]]
        identity = identify_lane(work, lane)
        for number, part in enumerate(split_overlaps(nodes.begin_ns[rows], nodes.end_ns[rows])):
            label = identity.label() if number == 0 else f"{identity.label()} (overlapping {number})"
            tracks.append(WorkTrack(label, identity.process, rows[part]))
    return tracks


def path_intervals(work: TimedWork) -> tuple[Int64Column, Int64Column]:
    """Begin and end of the path's nodes, in the order of ``work.path_rows``, as recorded but for overlap.

    Neighbours may overlap by the tolerance of the clock; the earlier one is cut there.
    """
    nodes, rows = work.nodes, work.path_rows
    begin = np.maximum.accumulate(nodes.begin_ns[rows]) if rows.size else nodes.begin_ns[rows]
    end = np.maximum(nodes.end_ns[rows], begin)
    end[:-1] = np.minimum(end[:-1], begin[1:])
    return begin, end


# ``csv`` and ``parquet``: a row per dispatch and copy, by time: resources, path, idle time, counters.


#: Times in ns as recorded. Behind them stand two columns per counter, ``NAME`` and ``NAME_per_s``.
COLUMNS = (
    *("machine", "process", "gpu", "stream", "queue", "kind", "dispatch_id", "correlation_id", "name"),
    *("begin_ns", "end_ns", "duration_ns", "slack_ns", "on_path"),
    *("idle_before_ns", "idle_cause", *(f"idle_{cause}_ns" for cause in IDLE_CAUSES)),
    *("vgpr", "accum_vgpr", "sgpr", "lds_bytes", "scratch_bytes"),
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
)


def to_csv(work: TimedWork, counters: Mapping[str, Float64Column]) -> bytes:
    """RFC 4180 with line feeds; see ``cell_text`` for what becomes of names. Unknown is an empty cell."""
    columns = _columns(work, counters, cell_text)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([cell_text(name) for name in columns])
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode("utf-8")


def to_parquet(work: TimedWork, counters: Mapping[str, Float64Column]) -> bytes:
    """The same table with types. Raises ``MissingError`` without pyarrow, which not everybody installs."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingError(
            "the format parquet needs the package pyarrow, which is not installed",
            next_step="pip install 'rpl-report[parquet]', or use --format csv",
        ) from None
    columns = _columns(work, counters, encodable)
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def cell_text(text: str) -> str:
    """Control characters as escapes, and a quote before what a spreadsheet would take for a formula."""
    safe = readable(text)
    return f"'{safe}" if safe.startswith(("=", "+", "-", "@")) else safe


def _columns(work: TimedWork, counters: Mapping[str, Float64Column], shown: Any) -> dict[str, Cells]:
    """The cells by column name; ``shown`` makes a text of the recording fit the format."""
    nodes, trace = work.nodes, work.trace
    row = np.where(nodes.is_copy, -1, nodes.row)
    duration = nodes.duration_ns()
    # GPU, stream and queue of every node.
    identities = [identify_lane(work, lane) for lane in range(len(work.nodes.lanes))]
    gpu = [each.agent for each in identities]
    stream = [None if each.by_queue else each.id for each in identities]
    queue = [each.id if each.by_queue else None for each in identities]
    lane = work.nodes.lane
    cells: tuple[Cells, ...] = (
        _texts([shown(process.node) for process in trace.processes], nodes.process),
        _texts([process.pid for process in trace.processes], nodes.process),
        *(_texts(gpu, lane), _texts(stream, lane), _texts(queue, lane)),
        _texts(["kernel", "copy"], nodes.is_copy.astype(np.int64)),
        _numbers(_of_dispatch(row, trace.dispatches.dispatch_id)),
        _numbers(nodes.correlation_id),
        _texts([shown(name) for name in nodes.symbol_names], nodes.symbol),
        nodes.begin_ns.tolist(),
        nodes.end_ns.tolist(),
        duration.tolist(),
        work.slack_ns.tolist(),
        work.on_path().astype(np.int8).tolist(),
        *_idle_columns(work),
        *_resources(work, row),
    )
    columns = dict(zip(COLUMNS, cells, strict=True))
    for name, values in counters.items():
        value = np.append(values, np.nan)[row]  # copies have row -1
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(duration > 0, value / (duration / 1e9), np.nan)
        label = shown(name)
        while label in columns or f"{label}_per_s" in columns:
            label += "_"  # a name that a column has already
        columns |= {label: _floats(value), f"{label}_per_s": _floats(rate)}
    return columns


def _texts(texts: Sequence[Any], index: NDArray[np.integer]) -> Cells:
    return [texts[i] if i >= 0 else None for i in index.tolist()]


def _numbers(values: NDArray[np.integer]) -> Cells:
    return [None if value < 0 else value for value in values.tolist()]


def _floats(values: Float64Column) -> Cells:
    return [None if value != value else value for value in values.tolist()]


def _of_dispatch(row: Int64Column, column: NDArray[np.integer]) -> Int64Column:
    """Values of dispatches for the nodes, -1 for copies."""
    return np.where(row >= 0, np.append(column, -1)[row], -1)


def _idle_columns(work: TimedWork) -> list[Cells]:
    """How long the GPU had idled when the node began, the cause that took most of it, and each cause."""
    spent = np.zeros((len(IDLE_CAUSES), len(work.nodes)), dtype=np.int64)
    for idle in work.idle:
        each = idle.intervals
        np.add.at(spent, (each.cause, each.node), each.end_ns - each.begin_ns)
    total = spent.sum(axis=0)
    cause = np.where(total > 0, spent.argmax(axis=0), -1)
    return [total.tolist(), _texts(IDLE_CAUSES, cause), *(part.tolist() for part in spent)]


def _resources(work: TimedWork, row: Int64Column) -> list[Cells]:
    """Registers, LDS, scratch and geometry of the dispatches."""
    trace, dispatches = work.trace, work.trace.dispatches
    registers = [(k.arch_vgpr, k.accum_vgpr, k.sgpr) for k in trace.kernels]
    table = np.array([[-1 if n is None else n for n in each] for each in registers], np.int64).reshape(-1, 3)
    kernel, shape = _of_dispatch(row, dispatches.kernel), _of_dispatch(row, dispatches.shape)
    shapes = trace.shapes
    sizes = (shapes.lds_bytes, shapes.scratch_bytes, *shapes.grid.T, *shapes.workgroup.T)
    return [
        *(_numbers(_of_dispatch(kernel, column)) for column in table.T),
        *(_numbers(_of_dispatch(shape, column)) for column in sizes),
    ]
