"""Does a counter pass describe the launches it claims to: SQ_WAVES against the launch geometry.

Some profiler builds add the counters of several passes up, or lose part of the GPU; SQ_WAVES, which must
equal the number of waves launched, shows it (rocpd.md, section 2, "check SQ_WAVES == waves launched").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace

__all__ = ["WAVE_TOLERANCE", "untrue_waves"]

#: Chosen: waves of another process or of a trap handler may slip in; a lost XCD or a summed pass is > 12 %.
WAVE_TOLERANCE = 0.01
#: Wave sizes that a kernel may have on a GPU: RDNA runs wave32 and wave64 kernels, CDNA wave64 only.
_LARGEST_WAVE = 64


def untrue_waves(trace: Trace, sq_waves: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Dispatches whose SQ_WAVES contradicts their geometry; False where either is unknown."""
    dispatches, shapes = trace.dispatches, trace.shapes
    agent_waves = np.array([agent.wave_size or _LARGEST_WAVE for agent in trace.agents] + [_LARGEST_WAVE])
    if not len(shapes):
        return np.zeros(len(dispatches), dtype=np.bool_)
    items = np.prod(shapes.workgroup, axis=1)
    extents = np.concatenate([shapes.workgroup, shapes.grid], axis=1)
    known: NDArray[np.bool_] = np.all(extents > 0, axis=1)
    matches = np.zeros(len(dispatches), dtype=np.bool_)
    for wave_size in (agent_waves[dispatches.agent], np.full(len(dispatches), _LARGEST_WAVE)):
        per_workgroup = -(-items[dispatches.shape] // wave_size)
        launched = shapes.workgroups()[dispatches.shape] * per_workgroup
        matches |= np.abs(sq_waves - launched) <= WAVE_TOLERANCE * launched
    checkable: NDArray[np.bool_] = known[dispatches.shape] & (dispatches.shape >= 0) & ~np.isnan(sq_waves)
    untrue: NDArray[np.bool_] = checkable & ~matches
    return untrue
