"""Counter readings as read from a file to the ``CounterValues`` of a trace, with consistency checks.

A reading that is no number makes the whole (dispatch, counter) unusable: a sum over the other instances
would look right and be wrong. Instances without a recorded index are numbered per (dispatch, counter).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED, CounterValues
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.model_columns import typed_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["CounterRows", "checked_counters"]


@frozen(eq=False)
class CounterRows:
    """Readings in file order. ``instance`` is the recorded instance, or None when none is recorded."""

    dispatch: Int64Column  # final row of the dispatch, -1 where it is unknown
    counter: Int32Column
    value: Float64Column
    duration_ns: Int64Column
    instance: Int32Column | None = None


def checked_counters(rows: CounterRows, names: Sequence[str], findings: Findings) -> CounterValues:
    """Readings in order of (dispatch, counter, instance), without those that can't be used."""
    orphan = (rows.dispatch < 0) | (rows.counter < 0)
    findings.add(
        "counter.unknown_dispatch",
        int(orphan.sum()),
        "counter reading belongs to no recorded dispatch or counter and is left out",
        "counter readings belong to no recorded dispatch or counter and are left out",
    )
    kept = np.flatnonzero(~orphan)
    pair = rows.dispatch[kept] * max(len(names), 1) + rows.counter[kept]
    order = np.argsort(pair, kind="stable")
    kept, pair = kept[order], pair[order]
    instance = _running_instances(pair) if rows.instance is None else rows.instance[kept]
    if rows.instance is not None:
        order = np.lexsort((instance, pair))
        kept, pair, instance = kept[order], pair[order], instance[order]
    usable = ~_of_bad_pairs(pair, ~np.isfinite(rows.value[kept]), findings)
    kept, pair = kept[usable], pair[usable]
    columns: dict[str, NDArray[Any]] = {
        "dispatch": rows.dispatch[kept],
        "counter": rows.counter[kept],
        "instance": instance[usable],
        "value": rows.value[kept],
        "duration_ns": rows.duration_ns[kept],
    }
    values = CounterValues(**typed_columns(CounterValues, columns, None))
    _check_row_counts(values, pair, names, findings)
    return values


def _running_instances(pair: Int64Column) -> Int32Column:
    """0, 1, 2 within each run of equal ``pair``; -1 where the run is a single row (already a sum)."""
    starts = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]]) if len(pair) else np.empty(0, np.int64)
    lengths = np.diff(np.r_[starts, len(pair)])
    running = np.arange(len(pair)) - np.repeat(starts, lengths)
    return np.where(np.repeat(lengths, lengths) == 1, NOT_RECORDED, running).astype(np.int32)


def _of_bad_pairs(pair: Int64Column, bad: NDArray[np.bool_], findings: Findings) -> NDArray[np.bool_]:
    findings.add(
        "counter.not_a_number",
        int(bad.sum()),
        "counter reading is missing, infinite or no number; the counter is unknown for its dispatch",
        "counter readings are missing, infinite or no numbers; the counter is unknown for their dispatches",
        severity=Severity.ERROR,
        cause="the hardware or the driver gave no value",
    )
    return np.isin(pair, pair[bad]) if bad.any() else bad


def _check_row_counts(
    values: CounterValues, pair: Int64Column, names: Sequence[str], findings: Findings
) -> None:
    """Every dispatch of one counter should have the same number of instance rows."""
    if not len(pair):
        return
    starts = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]])
    lengths = np.diff(np.r_[starts, len(pair)])
    counter = values.counter[starts]
    most = np.zeros(len(names), np.int64)
    np.maximum.at(most, counter, lengths)
    uneven = lengths != most[counter]
    affected = sorted({names[i] for i in counter[uneven].tolist()})
    findings.add(
        "counter.uneven_rows",
        int(uneven.sum()),
        f"(dispatch, counter) pair has fewer instance rows than others: {', '.join(affected[:5])}",
        f"(dispatch, counter) pairs have fewer instance rows than others: {', '.join(affected[:5])}",
        cause="readings were lost, or dispatches ran on GPUs with different partitions",
        remedy="collect the counters again before trusting their sums",
    )
