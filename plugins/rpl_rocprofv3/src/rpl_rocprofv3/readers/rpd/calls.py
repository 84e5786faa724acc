"""Host-side calls of an RPD database: ``rocpd_api`` with stream handles from the argument texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.calls import HostRange
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.handle_text import handle_value
from rpl_rocprofv3.readers.columns.id_lookup import distinct_ids, positions, taken
from rpl_rocprofv3.readers.sqlite.integer_columns import read_integers
from rpl_rocprofv3.readers.trace.api_table import no_arguments, ordered_api_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rpl_core.model.trace import ApiCalls, Int32Column, Int64Column, UInt64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.sqlite.integer_columns import IntegerColumns
    from rpl_rocprofv3.readers.sqlite.tables import Tables

__all__ = ["RpdCalls", "hip_calls", "read_calls", "user_ranges"]

# Other rows are markers of the application and the profiler's own bookkeeping.
_HIP_PREFIX = "hip"
_MARKER = "UserMarker"
_STREAM = re.compile(r"\bstream\s*=\s*(0x[0-9a-fA-F]+)")
_EVENT = re.compile(r"\bevent\s*=\s*(0x[0-9a-fA-F]+)")


@frozen(eq=False)
class RpdCalls:
    """All rows of ``rocpd_api``; ``function`` points into ``functions``."""

    raw: IntegerColumns
    function: Int32Column
    functions: tuple[str, ...]

    def name_of(self, api: Int64Column) -> Int32Column:
        """Function index of the calls with these row ids, -1 where there is none."""
        row = positions(api, self.raw["id"])
        if not len(self.function):
            return row
        return np.where(row < 0, NOT_RECORDED, self.function[row]).astype(np.int32)

    def stream_of(self, api: Int64Column, strings: Mapping[int, str]) -> Int64Column:
        """Stream pointer in the argument text of the calls, -1 where there is none."""
        row = positions(api, self.raw["id"])
        handle = _handles(taken(self.raw["args_id"], row), strings, _STREAM)
        usable = handle <= np.uint64(np.iinfo(np.int64).max)
        return np.where(usable, handle.view(np.int64), NOT_RECORDED)


def read_calls(
    database: Database, tables: Tables, strings: Mapping[int, str], findings: Findings
) -> RpdCalls:
    """Read all host-side rows."""
    table = tables.get("rocpd_api")
    assert table is not None  # the identity check asked for it
    raw = read_integers(database, table, ("id", "pid", "tid", "start", "end", "apiName_id", "args_id"))
    findings.add(
        "api.unreadable_values",
        raw.unreadable,
        "value in rocpd_api is no integer",
        "values in rocpd_api are no integers",
    )
    used = distinct_ids(raw["apiName_id"])
    names = tuple(strings.get(i, "unknown") for i in used.tolist())
    return RpdCalls(raw, positions(raw["apiName_id"], used), names)


def hip_calls(
    calls: RpdCalls, process: Int32Column, strings: Mapping[int, str], findings: Findings
) -> ApiCalls | None:
    """The HIP calls, None when there are none. ``process`` is the index per row of ``calls``."""
    hip = [i for i, name in enumerate(calls.functions) if name.startswith(_HIP_PREFIX)]
    chosen = np.flatnonzero(positions(calls.function.astype(np.int64), hip) >= 0)
    if not len(chosen):
        return None
    raw = calls.raw
    arguments = no_arguments(len(chosen))
    texts = raw["args_id"][chosen]
    arguments.stream_handle[:] = _handles(texts, strings, _STREAM)
    arguments.event_handle[:] = _handles(texts, strings, _EVENT)
    return ordered_api_calls(
        process=process[chosen],
        thread_id=raw.wide("tid")[chosen],
        function=calls.function[chosen],
        correlation_id=raw["id"][chosen],
        begin_ns=raw.wide("start")[chosen],
        end_ns=raw.wide("end")[chosen],
        arguments=arguments,
        findings=findings,
    )


def user_ranges(calls: RpdCalls, guid: str, strings: Mapping[int, str]) -> Iterator[HostRange]:
    """Ranges of roctx; marks without a length are none."""
    marker = [i for i, name in enumerate(calls.functions) if name == _MARKER]
    raw, begin, end = calls.raw, calls.raw.wide("start"), calls.raw.wide("end")
    chosen = np.flatnonzero((positions(calls.function.astype(np.int64), marker) >= 0) & (begin < end))
    columns = (raw["args_id"], raw["pid"], raw.wide("tid"), begin, end)
    for text, pid, *place in zip(*(column[chosen].tolist() for column in columns), strict=True):
        if text in strings:
            yield HostRange(strings[text], guid, pid, *place)


def _handles(text_id: Int64Column, strings: Mapping[int, str], pattern: re.Pattern[str]) -> UInt64Column:
    used = distinct_ids(text_id)
    handles = np.full(len(used) + 1, NO_HANDLE, np.uint64)
    for index, number in enumerate(used.tolist()):
        match = pattern.search(strings.get(number, ""))
        value = handle_value(match[1]) if match else None
        if value is not None:
            handles[index] = value
    return handles[positions(text_id, used)]
