"""The counter values of one pass as columns, and whether they describe the launches that they claim to.

One value per dispatch, hardware instances summed. Values that cannot be right (not finite, negative, some
instances missing) are left out and counted, so that a sum never silently lacks a part. What the columns of
several passes say together is in ``join``.

Some profiler builds add the counters of several passes up, or lose part of the GPU: the counter of launched
waves, which must equal what the geometry gives, shows it (docs/reference/formats.md, section 2). Which one it
is, is a fact of the architecture (``RecordQuirks.wave_counter``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rpl_core.model.device import Architecture
    from rpl_core.model.trace import CounterValues, Trace

__all__ = ["WAVE_TOLERANCE", "PassColumns", "WaveCheck", "read_columns", "wave_check_of"]

#: Chosen: waves of another process or a trap handler may slip in; a lost part or a summed pass is > 12 %.
WAVE_TOLERANCE = 0.01


@frozen(eq=False)
class PassColumns:
    """Counter name -> one value per dispatch of the pass, NaN where it was not read or is not usable.

    ``invalid`` counts readings that are negative or not finite, ``repeated`` readings of the same
    (dispatch, counter, instance) beyond the first, ``incomplete`` (dispatch, counter) pairs with fewer
    instances than the same counter has elsewhere on that GPU.
    """

    columns: dict[str, NDArray[np.float64]]
    invalid: int = 0
    repeated: int = 0
    incomplete: int = 0


def read_columns(trace: Trace) -> PassColumns:
    """Sum the counter rows of ``trace`` over instances; ``trace.counters`` must be present."""
    counters = trace.counters
    assert counters is not None
    order = np.argsort(counters.counter, kind="stable")
    bounds = np.searchsorted(counters.counter[order], np.arange(len(trace.counter_names) + 1))
    columns: dict[str, NDArray[np.float64]] = {}
    invalid = repeated = incomplete = 0
    for number, name in enumerate(trace.counter_names):
        rows = order[bounds[number] : bounds[number + 1]]
        if not rows.size:
            continue
        kept = _first_readings(counters, rows)
        repeated += rows.size - kept.size
        values = counters.value[kept]
        bad = ~np.isfinite(values) | (values < 0)
        invalid += int(bad.sum())
        column, short = _sum_instances(counters.dispatch[kept], values, bad, trace.dispatches.agent)
        incomplete += short
        columns[name] = column
    return PassColumns(columns, invalid, repeated, incomplete)


def _first_readings(counters: CounterValues, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first row of each (dispatch, instance); a recorded sum (-1) displaces rows per instance."""
    dispatch, instance = counters.dispatch[rows], counters.instance[rows].astype(np.int64)
    summed = instance < 0
    if summed.any() and not summed.all():
        has_sum = np.zeros(int(dispatch.max()) + 1, dtype=np.bool_)
        has_sum[dispatch[summed]] = True
        keep = summed | ~has_sum[dispatch]
        rows, dispatch, instance = rows[keep], dispatch[keep], instance[keep]
    width = int(instance.max()) + 2
    _, first = np.unique(dispatch * width + instance + 1, return_index=True)
    kept: NDArray[np.int64] = rows[np.sort(first)]
    return kept


def _sum_instances(
    dispatch: NDArray[np.int64],
    values: NDArray[np.float64],
    bad: NDArray[np.bool_],
    agent: NDArray[np.int32],
) -> tuple[NDArray[np.float64], int]:
    """Sum per dispatch, NaN where a part is bad or missing, and how many dispatches lacked instances.

    A dispatch must have as many instances as any other on the same GPU.
    """
    count = agent.size
    sums = np.bincount(dispatch, weights=np.where(bad, 0.0, values), minlength=count)
    instances = np.bincount(dispatch, minlength=count)
    most = np.zeros(int(agent.max()) + 2, dtype=np.int64)  # the last entry is for an unknown GPU (-1)
    np.maximum.at(most, agent, instances)
    short = (instances > 0) & (instances < most[agent])
    spoiled = np.bincount(dispatch[bad], minlength=count) > 0
    column = np.where((instances == 0) | short | spoiled, np.nan, sums)
    return column, int(short.sum())


@frozen
class WaveCheck:
    """The counter of launched waves, and the wave sizes that kernels may have whatever the driver says."""

    counter: str
    wave_sizes: tuple[int, ...] = ()

    def counted(self, columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """The counter's column, the sum over instances where both were recorded."""
        return columns.get(f"{self.counter}_sum", columns.get(self.counter))

    def untrue(self, trace: Trace, counted: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Dispatches whose waves contradict their geometry; False where either is unknown."""
        dispatches, shapes = trace.dispatches, trace.shapes
        if not len(shapes):
            return np.zeros(len(dispatches), dtype=np.bool_)
        items = np.prod(shapes.workgroup, axis=1)
        extents = np.concatenate([shapes.workgroup, shapes.grid], axis=1)
        known: NDArray[np.bool_] = np.all(extents > 0, axis=1)
        matches = np.zeros(len(dispatches), dtype=np.bool_)
        sizes = self._sizes(trace)
        for wave_size in sizes:
            per_workgroup = -(-items[dispatches.shape] // np.maximum(wave_size, 1))
            launched = shapes.workgroups()[dispatches.shape] * per_workgroup
            matches |= (wave_size > 0) & (np.abs(counted - launched) <= WAVE_TOLERANCE * launched)
        sized = np.any([size > 0 for size in sizes], axis=0)
        checkable: NDArray[np.bool_] = known[dispatches.shape] & (dispatches.shape >= 0) & ~np.isnan(counted)
        untrue: NDArray[np.bool_] = checkable & sized & ~matches
        return untrue

    def _sizes(self, trace: Trace) -> list[NDArray[np.int64]]:
        """Possible wave sizes per dispatch, 0 where the driver did not state one."""
        stated = np.array([agent.wave_size or 0 for agent in trace.agents] + [0], dtype=np.int64)
        of_agents = stated[trace.dispatches.agent]
        return [of_agents, *(np.full(len(of_agents), size, dtype=np.int64) for size in self.wave_sizes)]


def wave_check_of(architecture: Architecture | None) -> WaveCheck | None:
    """The check that the architecture's facts allow; ``None`` where no counter of waves is known."""
    if architecture is None or architecture.record_quirks.wave_counter is None:
        return None
    files = architecture.occupancy.register_files if architecture.occupancy is not None else ()
    return WaveCheck(architecture.record_quirks.wave_counter, tuple(file.wave_size for file in files))
