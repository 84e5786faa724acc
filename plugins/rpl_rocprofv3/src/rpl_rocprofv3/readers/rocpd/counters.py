"""Counter readings of a rocpd part: the instance rows of ``rocpd_pmc_event``.

The view ``counters_collection`` sums them, which is wrong for clocks and rates
(docs/reference/formats.md, trap 5), so it is not used. From schema 3.0.3 on rows carry hardware coordinates,
and streamed (SPM) samples share the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.id_lookup import positions
from rpl_rocprofv3.readers.sqlite.integer_columns import read_numbers
from rpl_rocprofv3.readers.trace.counter_table import CounterRows

if TYPE_CHECKING:
    from rpl_core.model.trace import Float64Column, Int32Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns.id_lookup import IntegerColumn
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.rocpd.parts import Part
    from rpl_rocprofv3.readers.trace.dispatch_table import OrderedDispatches

__all__ = ["RocpdCounters", "read_counters"]

_COORDINATES = ("xcc", "shader_engine", "shader_array", "wgp", "instance")


@frozen(eq=False)
class RocpdCounters:
    """Readings by event id, with the counter names that ``counter`` points to."""

    names: tuple[str, ...]
    event_id: IntegerColumn
    counter: Int32Column
    value: Float64Column
    instance: Int32Column | None

    def rows(self, event_of_dispatch: IntegerColumn, ordered: OrderedDispatches) -> CounterRows:
        """The readings attached to the final dispatch rows, which came with these event ids."""
        place = positions(self.event_id, event_of_dispatch)
        row_of = np.append(ordered.row_of, NOT_RECORDED)
        duration = np.append(ordered.dispatches.duration_ns(), NOT_RECORDED)
        dispatch = row_of[place]
        return CounterRows(dispatch, self.counter, self.value, duration[dispatch], self.instance)


def read_counters(database: Database, part: Part, findings: Findings) -> RocpdCounters | None:
    """Read all readings that belong to dispatches; None when no counter was collected."""
    table = part.table("pmc_event")
    if table is None:
        return None
    read = read_numbers(database, table, ("event_id", "pmc_id", "sample_id", *_COORDINATES), "value")
    streamed = read.integers["sample_id"] != NOT_RECORDED
    findings.add(
        "counter.streamed_samples",
        int(streamed.sum()),
        "streamed (SPM) counter sample is not read",
        "streamed (SPM) counter samples are not read",
        severity=Severity.INFO,
    )
    kept = np.flatnonzero(~streamed)
    if not len(kept):
        return None
    names, counter_of = _counter_names(part)
    index = np.array([*counter_of.values(), NOT_RECORDED], np.int32)
    return RocpdCounters(
        names=names,
        event_id=read.integers["event_id"][kept],
        counter=index[positions(read.integers["pmc_id"][kept], list(counter_of))],
        value=read.values[kept],
        instance=_instances([read.integers[name][kept] for name in _COORDINATES]),
    )


def _counter_names(part: Part) -> tuple[tuple[str, ...], dict[int, int]]:
    """Names in order, and the name index of each counter id (one id per GPU and counter)."""
    table = part.table("info_pmc")
    found = {
        row[0]: str(row[1])
        for row in (table.rows(part.connection, ("id", "name")) if table else ())
        if isinstance(row[0], int)
    }
    names = tuple(sorted(set(found.values())))
    index = {name: i for i, name in enumerate(names)}
    return names, {number: index[name] for number, name in found.items()}


def _instances(coordinates: list[IntegerColumn]) -> Int32Column | None:
    """One number per distinct hardware coordinate, None when no row has coordinates."""
    if all(bool((column < 0).all()) for column in coordinates):
        return None
    _, number = np.unique(np.stack(coordinates, axis=1), axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int32)
