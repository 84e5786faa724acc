"""FLOPs as counted and as estimated, side by side, in the text report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import UNKNOWN, marked
from rpl_analysis.text.fit import fit_table
from rpl_core.cli.output import USUAL_WIDTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RooflineDocument
    from rpl_core.contracts.common import MetricDoc

__all__ = ["corrections_section"]

_NAME_WIDTH = 48
#: A correction by less is not worth a line (chosen).
_NOTEWORTHY = 0.01
_COLUMNS = (("packed", "packed as two"), ("active_lanes", "active lanes"))


def corrections_section(
    roofline: RooflineDocument, names: Mapping[str, str], width: int = USUAL_WIDTH
) -> str:
    """A table of the kernels whose count an estimate changes, else the empty text."""
    kernels = [kernel for kernel in roofline.kernels if _is_corrected(kernel)]
    if not kernels:
        return ""
    rows = [
        (
            names.get(kernel.name, kernel.name),
            _figure(kernel.flops),
            *(_figure(kernel.corrections.get(name)) for name, _ in _COLUMNS),
        )
        for kernel in kernels
    ]
    columns = ("FLOPs per launch", "counted", *(f"est.: {title}" for _, title in _COLUMNS))
    return fit_table(columns, rows, width, right=(1, 2, 3), droppable=(3, 2), longest_name=_NAME_WIDTH)[0]


def _is_corrected(kernel: KernelRooflineDoc) -> bool:
    counted = kernel.flops.value
    values = [metric.value for metric in kernel.corrections.values() if metric.value is not None]
    return bool(counted) and any(abs(value / (counted or 1.0) - 1.0) > _NOTEWORTHY for value in values)


def _figure(metric: MetricDoc | None) -> str:
    return UNKNOWN if metric is None else marked(metric.value, metric.exactness)
