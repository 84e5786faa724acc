"""What the counters analyzer provides: counter values per kernel and dispatch, and derived quantities.

Facts: ``"kernel_counters"`` maps kernel names to ``KernelCounters``, ``"kernel_quantities"`` maps them to
``KernelQuantities``; both in the order of names, both ``None`` when nothing was collected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.metric import Metric

__all__ = ["CounterSums", "JoinedCounters", "KernelCounters", "KernelQuantities", "QuantityValue"]


@frozen
class CounterSums:
    """Sums of several counters over the ``launches`` dispatches for which every one of them was read.

    ``columns`` are their values in each of these dispatches.
    """

    values: Mapping[str, float]
    launches: int
    columns: Mapping[str, NDArray[np.float64]] = attrs.field(factory=dict, eq=False, repr=False)


@frozen(eq=False)
class KernelCounters:
    """All counter values of one kernel over all counter passes.

    ``columns`` maps a counter name as recorded to one value per dispatch (sum over hardware instances),
    NaN where it was not read. Row i of every column is the same dispatch: same process, GPU and occurrence,
    but for counters ``in_turns``.
    """

    name: str
    launches: int
    columns: Mapping[str, NDArray[np.float64]]
    #: No launch has all counters, because groups of them took turns: row i joins the i-th launch of each
    #: group, and all figures are estimates.
    in_turns: bool = False

    def recorded_name(self, counter: str) -> str | None:
        """The recorded column for a counter: ``X_sum``, else ``X`` (summed instance rows), else ``None``.

        ``X_sum`` comes first because the profiler reads it in one pass with its neighbours, while rows per
        instance of the same counter may stem from a pass of their own.
        """
        for candidate in (f"{counter}_sum", counter):
            column = self.columns.get(candidate)
            if column is not None and not bool(np.isnan(column).all()):
                return candidate
        return None

    def sums(self, counters: tuple[str, ...]) -> CounterSums | None:
        """Sums over the dispatches that have all of ``counters``; ``None`` when no dispatch has."""
        columns: dict[str, NDArray[np.float64]] = {}
        for counter in counters:
            recorded = self.recorded_name(counter)
            if recorded is None:
                return None
            columns[counter] = self.columns[recorded]
        complete = np.ones(self.launches, dtype=np.bool_)
        for column in columns.values():
            complete &= ~np.isnan(column)
        launches = int(complete.sum())
        if launches == 0:
            return None
        columns = {name: column[complete] for name, column in columns.items()}
        return CounterSums({name: float(c.sum()) for name, c in columns.items()}, launches, columns)


@frozen
class JoinedCounters:
    """The counter table of a recording and what was wrong with the passes."""

    kernels: Mapping[str, KernelCounters]
    diagnostics: tuple[Diagnostic, ...] = ()


@frozen
class QuantityValue:
    """A quantity of one kernel.

    ``per_launch`` is the mean over the ``launches`` dispatches that had every counter of the formula,
    ``total`` the sum over them; for a ratio both are the same figure.
    """

    per_launch: Metric
    total: Metric
    launches: int


@frozen
class KernelQuantities:
    """Every quantity of the device's counter map for one kernel, by quantity name.

    ``launches`` counts the kernel's dispatches in the counter passes.
    """

    name: str
    launches: int
    values: Mapping[str, QuantityValue]

    def per_launch(self, quantity: str) -> Metric | None:
        """The mean per launch (or the ratio); ``None`` if the device does not define the quantity."""
        value = self.values.get(quantity)
        return None if value is None else value.per_launch
