"""Counter values for the dispatches of another run: those of a timing run, which was recorded without any.

Dispatches are joined as counter passes are among themselves: same process, GPU, kernel, occurrence and
geometry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.counters.join import JoinRules, joint_columns
from rpl_analysis.counters.occurrences import number_dispatches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.model.device import Architecture
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Float64Column, Int64Column, Trace

__all__ = ["counters_by_dispatch"]


def counters_by_dispatch(
    recording: Recording, trace: Trace, architecture: Architecture | None = None
) -> Mapping[str, Float64Column]:
    """Counter name -> value per dispatch of ``trace`` (n,), NaN where none was read; sorted by name.

    Empty where nothing was counted. ``architecture`` says which counters show a damaged pass.
    """
    passes = recording.counter_passes
    if not passes:
        return {}
    joint = number_dispatches((*passes, trace))
    rows = joint.rows[-1]
    rules = JoinRules.of(None, architecture)
    columns, _ = joint_columns(passes, attrs.evolve(joint, rows=joint.rows[:-1]), rules)
    same = rows >= 0
    for counted, places in zip(passes, joint.rows, strict=False):
        same &= _same_geometry(trace, rows, counted, places, joint.count)
    return {name: np.where(same, column[rows], np.nan) for name, column in sorted(columns.items())}


def _same_geometry(
    trace: Trace, rows: Int64Column, counted: Trace, places: Int64Column, count: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """True unless ``counted`` holds the dispatch with another geometry."""
    known = np.full((count, 6), -1, dtype=np.int64)
    known[places[places >= 0]] = _geometry(counted)[places >= 0]
    recorded = known[rows]
    return np.asarray((recorded == _geometry(trace)).all(axis=1) | (recorded == -1).all(axis=1))


def _geometry(trace: Trace) -> Int64Column:
    shapes = np.concatenate([trace.shapes.workgroup, trace.shapes.grid], axis=1)
    unknown = np.full((1, 6), -1, dtype=np.int64)
    return np.asarray(np.concatenate([shapes, unknown])[trace.dispatches.shape])
