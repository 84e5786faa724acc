"""Which launch shape and which resources stand for a kernel that was launched in several ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.runtime.model import KernelResources
from rpl_core.model.trace import Trace
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 2**16
Triple = tuple[int, int, int]


@frozen
class RepresentativeShape:
    """Geometry and resources of the shape in which a kernel spent most of its time."""

    workgroup: Triple | None
    grid: Triple | None
    resources: KernelResources
    shape_count: int
    register_variants: int  # distinct (arch, accum, sgpr) under this name


def representative_shapes(
    trace: Trace, name_numbers: NDArray[np.int32], names: tuple[str, ...]
) -> Mapping[str, RepresentativeShape]:
    """For each kernel name of ``trace``: its shape with the largest summed time (ties: lowest index)."""
    dispatches = trace.dispatches
    best: dict[int, tuple[float, int]] = {}
    counts: dict[int, int] = {}
    for row, time in _shapes_in_use(trace):
        number = int(name_numbers[dispatches.kernel[row]])
        counts[number] = counts.get(number, 0) + 1
        if number not in best or time > best[number][0]:
            best[number] = (time, row)
    variants = _register_variants(trace, name_numbers)
    return {
        names[number]: _shape_at(trace, row, counts[number], variants[number])
        for number, (_, row) in sorted(best.items())
    }


def _shapes_in_use(trace: Trace) -> list[tuple[int, float]]:
    """First row and summed time of every pair of kernel and shape that was launched, pairs ascending."""
    dispatches = trace.dispatches
    shapes = max(len(trace.shapes), 1) + 1
    pairs = len(trace.kernels) * shapes
    first: dict[int, int] = {}
    times: dict[int, float] = {}
    # In blocks, which stay in the caches and need no memory per row.
    for begin in range(0, len(dispatches), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        duration = dispatches.end_ns[block] - dispatches.begin_ns[block]
        pair = dispatches.kernel[block].astype(np.int64) * shapes + dispatches.shape[block] + 1
        usable = (duration >= 0) & (dispatches.kernel[block] >= 0)
        rows = np.arange(begin, begin + pair.size)
        if not usable.all():
            pair, duration, rows = pair[usable], duration[usable], rows[usable]
        for number, row, spent in _summed(pair, rows, duration, pairs):
            first.setdefault(number, row)
            times[number] = times.get(number, 0.0) + spent
    return [(first[pair], times[pair]) for pair in sorted(first)]


def _summed(
    pair: NDArray[np.int64], rows: NDArray[np.int64], duration: NDArray[np.int64], pairs: int
) -> Iterable[tuple[int, int, float]]:
    """Number, first row and summed time of each pair that occurs."""
    if pairs > _BLOCK:
        distinct, first, pair = np.unique(pair, return_index=True, return_inverse=True)
        return zip(distinct.tolist(), rows[first].tolist(), np.bincount(pair, duration).tolist(), strict=True)
    first = np.full(pairs, -1, np.int64)
    first[pair[::-1]] = rows[::-1]  # the last assignment counts, which is that of the first row
    present = np.flatnonzero(first >= 0)
    time = np.bincount(pair, duration, pairs)
    return zip(present.tolist(), first[present].tolist(), time[present].tolist(), strict=True)


def _shape_at(trace: Trace, row: int, shape_count: int, register_variants: int) -> RepresentativeShape:
    kernel = trace.kernels[int(trace.dispatches.kernel[row])]
    shape = int(trace.dispatches.shape[row])
    known = shape >= 0
    shapes = trace.shapes
    lds = int(shapes.lds_bytes[shape]) if known else -1
    scratch = int(shapes.scratch_bytes[shape]) if known else -1
    return RepresentativeShape(
        workgroup=_triple(shapes.workgroup[shape]) if known else None,
        grid=_triple(shapes.grid[shape]) if known else None,
        resources=KernelResources(
            arch_vgpr=kernel.arch_vgpr,
            accum_vgpr=kernel.accum_vgpr,
            sgpr=kernel.sgpr,
            lds_bytes=lds if lds >= 0 else None,
            scratch_bytes=scratch if scratch >= 0 else None,
        ),
        shape_count=shape_count,
        register_variants=register_variants,
    )


def _triple(row: NDArray[np.int64]) -> Triple | None:
    """The three axes, or ``None`` where the source recorded no geometry (-1)."""
    x, y, z = (int(v) for v in row)
    return None if min(x, y, z) < 0 else (x, y, z)


def _register_variants(trace: Trace, name_numbers: NDArray[np.int32]) -> dict[int, int]:
    # One entry per kernel, and one that -1 lands in.
    launched = np.zeros(len(trace.kernels) + 1, np.bool_)
    launched[trace.dispatches.kernel] = True
    seen: dict[int, set[tuple[int | None, int | None, int | None]]] = {}
    for index in np.flatnonzero(launched[:-1]).tolist():
        kernel = trace.kernels[index]
        registers = (kernel.arch_vgpr, kernel.accum_vgpr, kernel.sgpr)
        seen.setdefault(int(name_numbers[index]), set()).add(registers)
    return {number: len(registers) for number, registers in seen.items()}
