"""Counter readings of workload tables, wide and long, as rows in long form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.trace.counter_table import CounterRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column
    from rpl_rocprofv3.readers.csv.tables import CsvColumns
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.workload.tables import WideHeader

__all__ = ["LongCounters", "WideCounters", "only_first_pass"]

_INDEXED = re.compile(r"(?P<name>[^\[\]]+)\[(?P<instance>\d{1,6})\]")


@frozen(eq=False)
class WideCounters:
    """Readings of a wide table, one array per counter column."""

    names: tuple[str, ...]
    counter: Int32Column  # per column
    instance: Int32Column  # per column
    cells: tuple[Float64Column, ...]  # per column the values of all rows
    repeated: int

    @classmethod
    def of(cls, columns: CsvColumns, header: WideHeader) -> WideCounters:
        names = tuple(sorted({column.counter for column in header.counters}))
        number = {name: index for index, name in enumerate(names)}
        return cls(
            names=names,
            counter=np.array([number[c.counter] for c in header.counters], np.int32),
            instance=np.array([c.instance for c in header.counters], np.int32),
            cells=tuple(columns.floats[c.column.lower()] for c in header.counters),
            repeated=len(header.repeated),
        )

    def rows(self, row_of: Int64Column, findings: Findings) -> CounterRows:
        """The readings; an empty cell is a counter that the pass of this dispatch lacks."""
        findings.add(
            "counter.repeated_column",
            self.repeated,
            "counter column repeats another under a pass number and is left out",
            "counter columns repeat others under a pass number and are left out",
            severity=Severity.INFO,
            cause="passes that read the same counter were merged into one table",
        )
        count = len(row_of)
        value = np.concatenate(self.cells)
        counter = np.repeat(self.counter, count)
        row = np.tile(np.arange(count), len(self.cells))
        recorded = _recorded_pairs(row, counter, value, len(self.names))
        return CounterRows(
            dispatch=row_of[row[recorded]],
            counter=counter[recorded],
            value=value[recorded],
            duration_ns=np.full(int(recorded.sum()), NOT_RECORDED, np.int64),
            instance=np.repeat(self.instance, count)[recorded],
        )


def _recorded_pairs(
    row: Int64Column, counter: Int32Column, value: Float64Column, names: int
) -> NDArray[np.bool_]:
    """Readings of (row, counter) pairs that have at least one value."""
    pair = row * max(names, 1) + counter
    with_value = np.zeros(int(pair.max(initial=-1)) + 1, np.bool_)
    with_value[pair[~np.isnan(value)]] = True
    return np.asarray(with_value[pair])


@frozen(eq=False)
class LongCounters:
    """Readings of a long table, each with the times of its dispatch in its pass."""

    names: tuple[str, ...]
    columns: CsvColumns
    counter: Int32Column
    instance: Int32Column
    dispatch_of_row: Int32Column

    @classmethod
    def of(cls, columns: CsvColumns, dispatch_of_row: Int32Column) -> LongCounters:
        texts = columns.texts["counter_name"]
        parsed = [_name_and_instance(text) for text in texts.texts]
        names = tuple(sorted({name for name, _ in parsed}))
        number = {name: index for index, name in enumerate(names)}
        counter = np.array([number[name] for name, _ in parsed], np.int32)[texts.code]
        instance = np.array([instance for _, instance in parsed], np.int32)[texts.code]
        return cls(names, columns, counter, instance, dispatch_of_row)

    def rows(self, row_of: Int64Column, findings: Findings) -> CounterRows:
        begin, end = (self.columns.integer(name) for name in ("Start_Timestamp", "End_Timestamp"))
        rows = CounterRows(
            dispatch=row_of[self.dispatch_of_row],
            counter=self.counter,
            value=self.columns.floats["counter_value"],
            duration_ns=np.where((begin >= 0) & (end >= begin), end - begin, NOT_RECORDED),
            instance=self.instance,
        )
        return only_first_pass(rows, begin, findings)


def _name_and_instance(text: str) -> tuple[str, int]:
    match = _INDEXED.fullmatch(text.strip())
    return (match["name"], int(match["instance"])) if match else (text.strip(), NOT_RECORDED)


def only_first_pass(rows: CounterRows, begin_ns: Int64Column, findings: Findings) -> CounterRows:
    """Without the readings of counters that a later pass read again; adding them up would double them."""
    assert rows.instance is not None  # callers know the instance
    order = np.lexsort((begin_ns, rows.instance, rows.counter, rows.dispatch))
    keys = (rows.dispatch[order], rows.counter[order], rows.instance[order])
    new = np.ones(len(order), np.bool_)
    if len(order):
        new[1:] = np.logical_or.reduce([np.diff(key) != 0 for key in keys])
    first_begin = begin_ns[order][np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    again = begin_ns[order] != first_begin
    findings.add(
        "counter.read_again",
        int(again.sum()),
        "counter reading repeats a counter that an earlier pass read for the same dispatch; the first counts",
        "counter readings repeat a counter that an earlier pass read for the same dispatch; the first counts",
        severity=Severity.INFO,
    )
    kept = np.sort(order[~again])
    return CounterRows(
        rows.dispatch[kept], rows.counter[kept], rows.value[kept], rows.duration_ns[kept], rows.instance[kept]
    )
