"""The kernels that a report lists, in the order that was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rpl_report.options import KERNEL, SORT

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import KernelProfile
    from rpl_core.interfaces.options import Options

__all__ = ["chosen_kernels"]

_Figure = Callable[["KernelProfile"], float | None]
_FIGURES: Mapping[str, _Figure] = {
    "time": lambda k: k.runtime_ms,
    "calls": lambda k: k.launches,
    "median": lambda k: k.median_ns,
    "criticality": lambda k: k.criticality_weight,
    "occupancy": lambda k: k.occupancy.theoretical,
    "bandwidth": lambda k: k.roofline.achieved_gbps if k.roofline else None,
    "intensity": lambda k: k.roofline.operational_intensity if k.roofline else None,
}


def chosen_kernels(
    kernels: Sequence[KernelProfile], names: Mapping[str, str], options: Options
) -> list[KernelProfile]:
    """Those that ``--kernel`` keeps, by their recorded or shown name, in the order of ``--sort``.

    Kernels without the figure come last; equal ones keep the document's order, which is by time.
    """
    pattern = re.compile(options[KERNEL] or "")
    chosen = [k for k in kernels if pattern.search(k.name) or pattern.search(names.get(k.name, ""))]
    if options[SORT] == "name":
        return sorted(chosen, key=lambda kernel: names.get(kernel.name, kernel.name))
    figure = _FIGURES[options[SORT]]

    def rank(kernel: KernelProfile) -> tuple[bool, float]:
        value = figure(kernel)
        return value is None, -(value or 0.0)

    return sorted(chosen, key=rank)
