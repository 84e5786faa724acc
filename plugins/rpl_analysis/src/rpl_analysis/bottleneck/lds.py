"""Kernels that use no LDS: their traffic there is zero without any counter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace

__all__ = ["kernels_without_lds"]


def kernels_without_lds(recording: Recording) -> frozenset[str]:
    """Names of kernels all of whose launches are recorded with zero bytes of LDS, static and dynamic."""
    without: set[str] = set()
    with_lds: set[str] = set()
    for trace in recording.traces:
        users = _users(trace)
        names = {trace.kernels[i].name for i in np.unique(trace.dispatches.kernel).tolist() if i >= 0}
        with_lds |= users
        without |= names - users
    return frozenset(without - with_lds)


def _users(trace: Trace) -> set[str]:
    """Kernels with a launch that has LDS, or of which that is not recorded."""
    shape, kernel = trace.dispatches.shape, trace.dispatches.kernel
    lds = np.append(trace.shapes.lds_bytes, -1)  # index -1: no shape
    rows = (lds[shape] != 0) & (kernel >= 0)
    return {trace.kernels[i].name for i in np.unique(kernel[rows]).tolist()}
