"""Which launch shape and which resources stand for a kernel that was launched in several ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.analysis.runtime.grouping import usable_rows
from rpl_core.analysis.runtime.model import KernelResources
from rpl_core.model.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

Triple = tuple[int, int, int]


@attrs.frozen
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
    rows = np.flatnonzero(usable_rows(trace.dispatches))
    if rows.size == 0:
        return {}
    dispatches = trace.dispatches
    shape_total = max(len(trace.shapes), 1)
    kernel = dispatches.kernel[rows].astype(np.int64)
    key = kernel * (shape_total + 1) + dispatches.shape[rows] + 1
    unique, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    time = np.bincount(inverse, weights=(dispatches.duration_ns()[rows]).astype(np.float64))
    best: dict[int, tuple[float, int]] = {}
    counts: dict[int, int] = {}
    for position in range(unique.size):
        row = int(rows[first[position]])
        number = int(name_numbers[dispatches.kernel[row]])
        counts[number] = counts.get(number, 0) + 1
        if number not in best or time[position] > best[number][0]:
            best[number] = (float(time[position]), row)
    variants = _register_variants(trace, name_numbers)
    return {
        names[number]: _shape_at(trace, row, counts[number], variants[number])
        for number, (_, row) in sorted(best.items())
    }


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
    launched = {int(i) for i in np.unique(trace.dispatches.kernel) if i >= 0}
    seen: dict[int, set[tuple[int | None, int | None, int | None]]] = {}
    for index in launched:
        kernel = trace.kernels[index]
        registers = (kernel.arch_vgpr, kernel.accum_vgpr, kernel.sgpr)
        seen.setdefault(int(name_numbers[index]), set()).add(registers)
    return {number: len(registers) for number, registers in seen.items()}
