"""Counter readings of a rocpd part: the instance rows of ``rocpd_pmc_event``.

The view ``counters_collection`` sums them, which is wrong for clocks and rates (rocpd.md, section 0.5),
so it is not used. From schema 3.0.3 on rows carry hardware coordinates, and streamed (SPM) samples share
the table.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.counter_table import CounterRows
from rpl_rocprofv3.readers.id_lookup import positions

if TYPE_CHECKING:
    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.rocpd_parts import Part
    from rpl_rocprofv3.readers.sqlite_tables import Table

__all__ = ["RocpdCounters", "read_counters"]

_COORDINATES = ("xcc", "shader_engine", "shader_array", "wgp", "instance")
_CHUNK_ROWS = 1 << 16


@attrs.frozen(eq=False)
class RocpdCounters:
    """Readings by event id, with the counter names that ``counter`` points to."""

    names: tuple[str, ...]
    event_id: Int64Column
    counter: Int32Column
    value: Float64Column
    instance: Int32Column | None

    def rows(
        self, event_of_dispatch: Int64Column, row_of: Int64Column, duration_ns: Int64Column
    ) -> CounterRows:
        """Attach the readings to the final dispatch rows."""
        place = positions(self.event_id, event_of_dispatch)
        dispatch = np.where(place < 0, NOT_RECORDED, row_of[place]) if len(row_of) else place.astype(np.int64)
        duration = (
            np.where(dispatch < 0, NOT_RECORDED, duration_ns[dispatch]) if len(duration_ns) else dispatch
        )
        return CounterRows(dispatch, self.counter, self.value, duration, self.instance)


def read_counters(part: Part, findings: Findings) -> RocpdCounters | None:
    """Read all readings that belong to dispatches; None when no counter was collected."""
    table = part.table("pmc_event")
    if table is None:
        return None
    columns = ("event_id", "pmc_id", "value", *(c for c in _COORDINATES if c in table.columns))
    blocks = _blocks(part, table, columns, findings)
    if not blocks:
        return None
    numbers = np.concatenate([block[0] for block in blocks])
    names, counter_of = _counter_names(part)
    known = positions(numbers[:, 1], list(counter_of))
    index = np.array(list(counter_of.values()), np.int32)
    return RocpdCounters(
        names=names,
        event_id=np.ascontiguousarray(numbers[:, 0]),
        counter=np.where(known < 0, NOT_RECORDED, index[known]).astype(np.int32) if len(index) else known,
        value=np.concatenate([block[1] for block in blocks]),
        instance=_instances(numbers[:, 2:]),
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


def _blocks(
    part: Part, table: Table, columns: tuple[str, ...], findings: Findings
) -> list[tuple[Int64Column, Float64Column]]:
    """Chunks of (event id, counter id, coordinates...) with their values."""
    condition = "sample_id IS NULL" if "sample_id" in table.columns else ""
    if condition:
        streamed = next(table.rows(part.connection, ("id",), "sample_id IS NOT NULL"), None) is not None
        findings.add(
            "counter.streamed_samples",
            int(streamed),
            "set of streamed (SPM) counter samples is not read",
            severity=Severity.INFO,
        )
    cursor = table.rows(part.connection, columns, condition)
    blocks = []
    while rows := list(islice(cursor, _CHUNK_ROWS)):
        event, counter, value, *coordinates = zip(*rows, strict=True)
        numbers = np.stack([_integers(c) for c in (event, counter, *coordinates)], axis=1)
        blocks.append((numbers, _floats(value)))
    return blocks


def _integers(values: tuple[Any, ...]) -> Int64Column:
    return np.fromiter((v if isinstance(v, int) else NOT_RECORDED for v in values), np.int64, len(values))


def _floats(values: tuple[Any, ...]) -> Float64Column:
    # SQLite stores NaN as NULL.
    numeric = (v if isinstance(v, (int, float)) else np.nan for v in values)
    return np.fromiter(numeric, np.float64, len(values))


def _instances(coordinates: Int64Column) -> Int32Column | None:
    """One number per distinct hardware coordinate, None when no row has coordinates."""
    if not coordinates.shape[1] or bool((coordinates < 0).all()):
        return None
    _, number = np.unique(coordinates, axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int32)
