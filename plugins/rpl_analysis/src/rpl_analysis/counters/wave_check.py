"""Does a counter pass describe the launches it claims to: counted waves against the launch geometry.

Some profiler builds add the counters of several passes up, or lose part of the GPU; the counter of launched
waves, which must equal what the geometry gives, shows it (rocpd.md, section 2). Which one it is, is a fact of
the architecture (``RecordQuirks.wave_counter``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rpl_core.model.architecture import Architecture
    from rpl_core.model.trace import Trace

__all__ = ["WAVE_TOLERANCE", "WaveCheck", "wave_check_of"]

#: Chosen: waves of another process or a trap handler may slip in; a lost part or a summed pass is > 12 %.
WAVE_TOLERANCE = 0.01


@attrs.frozen
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
