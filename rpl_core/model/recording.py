"""A recording: the traces of one profiled application, ready for analysis; processes merged into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from rpl_core.model.metric import Origin
from rpl_core.model.trace import (
    NOT_RECORDED,
    ApiCalls,
    Copies,
    CounterValues,
    DeviceEvents,
    Dispatches,
    LaunchShapes,
    Trace,
    TraceRole,
    TraceSource,
)
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rpl_core.model.device import ComputeCeiling, MemoryCeiling
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.trace import Agent, CallMeaning, Int32Column, Int64Column


@frozen(eq=False)
class Recording:
    """All traces of one application: repeated timing runs and separate counter passes.

    ``process_ms`` holds wall-clock process times when no GPU trace exists.
    """

    traces: tuple[Trace, ...]
    process_ms: tuple[float, ...] = ()
    command: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    incomplete: str | None = None  # why a run directory is unfinished
    counters_missing: str | None = None  # why counters that were asked for are not there
    files: tuple[tuple[Path, ...], ...] = ()  # that were read, per argument

    @property
    def timing_runs(self) -> tuple[Trace, ...]:
        """The traces that may serve as a source of time, in run order."""
        return tuple(t for t in self.traces if t.role is TraceRole.TIMING)

    @property
    def reference_runs(self) -> tuple[Trace, ...]:
        """Runs without calls and copies, beside timing runs with them: what recording these costs."""
        return tuple(t for t in self.traces if t.role is TraceRole.REFERENCE)

    @property
    def counter_passes(self) -> tuple[Trace, ...]:
        """Every trace that holds counter values, in pass order."""
        return tuple(t for t in self.traces if t.counters is not None)

    @property
    def origin(self) -> Origin:
        return Origin.weakest([t.origin for t in self.traces])

    @property
    def ceilings(self) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
        """What a benchmark reached on the machine of the recording: ``Trace.extras["ceilings"]``."""
        return tuple(ceiling for trace in self.traces for ceiling in trace.extras.get("ceilings", ()))

    @property
    def gpu_agents(self) -> tuple[Agent, ...]:
        """The GPUs that executed at least one dispatch, without repeats.

        One trace may describe an agent of which another one knows only the number.
        """
        seen: dict[tuple[str, int], Agent] = {}
        for trace in self.traces:
            # One entry per agent, and one that -1 lands in.
            used = np.zeros(len(trace.agents) + 1, np.bool_)
            used[trace.dispatches.agent] = True
            for index in np.flatnonzero(used[:-1]).tolist():
                agent = trace.agents[index]
                known = seen.get((agent.node, agent.index))
                if agent.kind == "GPU" and (known is None or known.architecture is None):
                    seen[agent.node, agent.index] = agent
        return tuple(seen.values())


# Traces of several processes of one execution become one trace.


Item = TypeVar("Item")
Rows = TypeVar("Rows")


def merge_traces(traces: Sequence[Trace]) -> Trace:
    """One trace of all processes. A single trace comes back as it is; none is a ``ValueError``."""
    if not traces:
        raise ValueError("there is no trace to merge")
    if len(traces) == 1:
        return traces[0]
    return _Merge(traces).trace()


def _shared(groups: Sequence[Sequence[Item]]) -> tuple[tuple[Item, ...], list[Int32Column]]:
    """The distinct items in order of appearance, and for each group the new index of its items."""
    index: dict[Item, int] = {}
    maps = [
        np.array([index.setdefault(item, len(index)) for item in group], dtype=np.int32) for group in groups
    ]
    return tuple(index), maps


def _mapped(column: Int32Column, new: Int32Column) -> Int32Column:
    """``new[column]``, with -1 kept."""
    if not len(new):
        return column
    return np.where(column < 0, NOT_RECORDED, new[column]).astype(np.int32)


def _shifted(column: Int32Column, by: int) -> Int32Column:
    return np.where(column < 0, NOT_RECORDED, column + by).astype(np.int32)


def _offsets(groups: Sequence[Sequence[Any]]) -> list[int]:
    return [0, *np.cumsum([len(group) for group in groups]).tolist()][:-1]


class _Merge:
    """The index maps of one merge, and the merged columns made with them."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self.traces = traces
        processes = _offsets([t.processes for t in traces])
        queues = _offsets([t.queues for t in traces])
        self.agents, agents = _shared([t.agents for t in traces])
        self.directions, directions = _shared([t.copy_directions for t in traces])
        self.functions, functions = _shared(
            [tuple(zip(t.api_functions, t.meanings(), strict=True)) for t in traces]
        )
        self.counter_names, counters = _shared([t.counter_names for t in traces])
        #: Index column -> what is added to it in each trace.
        self.offsets = {
            "process": processes,
            "kernel": _offsets([t.kernels for t in traces]),
            "stream": _offsets([t.streams for t in traces]),
            "queue": queues,
            "source_queue": queues,
        }
        #: Index column -> the new index of each old one, in each trace.
        self.maps = {
            "agent": agents,
            "source_agent": agents,
            "destination_agent": agents,
            "direction": directions,
            "function": functions,
            "counter": counters,
        }

    def trace(self) -> Trace:
        shapes, self.maps["shape"] = self._shapes()
        dispatches, row_maps = self._dispatches()
        return Trace(
            source=self._source(),
            role=TraceRole.COUNTERS
            if any(t.role is TraceRole.COUNTERS for t in self.traces)
            else TraceRole.TIMING,
            origin=Origin.weakest([t.origin for t in self.traces]),
            processes=tuple(process for t in self.traces for process in t.processes),
            agents=self.agents,
            kernels=self._owned("kernels"),
            dispatches=dispatches,
            shapes=shapes,
            streams=self._owned("streams"),
            queues=self._owned("queues"),
            copies=self._rows("copies", Copies, "correlation_id", "process", "end_ns", "begin_ns"),
            copy_directions=self.directions,
            host_api=next((t.host_api for t in self.traces if t.host_api), None),
            api_calls=self._rows("api_calls", ApiCalls, "correlation_id", "process", "begin_ns"),
            api_functions=tuple(name for name, _ in self.functions),
            api_meanings=self._api_meanings(),
            device_events=self._rows(
                "device_events", DeviceEvents, "correlation_id", "process", "end_ns", "begin_ns"
            ),
            counters=self._counters(row_maps),
            counter_names=self.counter_names,
            grouped_by_queue=any(t.grouped_by_queue for t in self.traces),
            diagnostics=tuple(d for t in self.traces for d in t.diagnostics),
            extras={
                key: tuple(value for t in self.traces for value in t.extras.get(key, ()))
                for key in dict.fromkeys(key for t in self.traces for key in t.extras)
            },
        )

    def _source(self) -> TraceSource:
        sources = [t.source for t in self.traces]
        paths = tuple(dict.fromkeys(path for source in sources for path in source.paths))
        # A source without hashes gives none; files of equal content keep one each.
        hash_of = dict(pair for source in sources for pair in zip(source.paths, source.sha256, strict=False))
        hashes = tuple(hash_of[path] for path in paths) if len(hash_of) == len(paths) else ()
        formats = ", ".join(dict.fromkeys(source.format for source in sources))
        return TraceSource(sources[0].reader, formats, paths, hashes)

    def _owned(self, field: str) -> tuple[Any, ...]:
        """Kernels, streams or queues, whose process index is shifted."""
        return tuple(
            item if item.process < 0 else attrs.evolve(item, process=item.process + offset)
            for trace, offset in zip(self.traces, self.offsets["process"], strict=True)
            for item in getattr(trace, field)
        )

    def _shapes(self) -> tuple[LaunchShapes, list[Int32Column]]:
        tables = [
            np.column_stack((t.shapes.workgroup, t.shapes.grid, t.shapes.lds_bytes, t.shapes.scratch_bytes))
            for t in self.traces
        ]
        table, number = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
        ends = np.cumsum([len(part) for part in tables])[:-1]
        shapes = LaunchShapes(table[:, 0:3], table[:, 3:6], table[:, 6], table[:, 7])
        return shapes, np.split(number.reshape(-1).astype(np.int32), ends)

    def _renumbered(self, i: int, rows: Any) -> Any:
        """Rows of trace ``i`` with the indices of the merged trace."""
        names = [field.name for field in attrs.fields(type(rows))]
        shifted = {n: _shifted(getattr(rows, n), self.offsets[n][i]) for n in names if n in self.offsets}
        mapped = {n: _mapped(getattr(rows, n), self.maps[n][i]) for n in names if n in self.maps}
        return attrs.evolve(rows, **shifted, **mapped)

    def _dispatches(self) -> tuple[Dispatches, list[Int64Column]]:
        """Merged dispatches, and the new row of each old row."""
        parts = [self._renumbered(i, t.dispatches) for i, t in enumerate(self.traces)]
        columns = _stacked(parts, Dispatches)
        keys = ("dispatch_id", "process", "end_ns", "begin_ns")
        order = np.lexsort(tuple(columns[key] for key in keys))
        new_row = np.empty(len(order), np.int64)
        new_row[order] = np.arange(len(order))
        ends = np.cumsum([len(part) for part in parts])[:-1]
        merged = Dispatches(**{name: column[order] for name, column in columns.items()})
        return merged, np.split(new_row, ends)

    def _rows(self, field: str, kind: type[Rows], *keys: str) -> Rows | None:
        by_trace = [(i, getattr(trace, field)) for i, trace in enumerate(self.traces)]
        parts = [self._renumbered(i, rows) for i, rows in by_trace if rows is not None]
        return kind(**_ordered(_stacked(parts, kind), *keys)) if parts else None

    def _api_meanings(self) -> tuple[CallMeaning, ...]:
        if not any(t.api_meanings for t in self.traces):
            return ()
        return tuple(meaning for _, meaning in self.functions)

    def _counters(self, row_maps: list[Int64Column]) -> CounterValues | None:
        parts = [
            attrs.evolve(self._renumbered(i, t.counters), dispatch=row_maps[i][t.counters.dispatch])
            for i, t in enumerate(self.traces)
            if t.counters is not None
        ]
        if not parts:
            return None
        return CounterValues(**_ordered(_stacked(parts, CounterValues), "instance", "counter", "dispatch"))


def _stacked(parts: Sequence[Any], kind: type) -> dict[str, NDArray[Any]]:
    names = [field.name for field in attrs.fields(kind)]
    return {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}


def _ordered(columns: dict[str, NDArray[Any]], *keys: str) -> dict[str, NDArray[Any]]:
    """Columns in order of ``keys``, the last one first (as ``numpy.lexsort``)."""
    order = np.lexsort(tuple(columns[key] for key in keys))
    return {name: column[order] for name, column in columns.items()}
