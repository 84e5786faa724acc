"""One RPD database (one rank) as a ``Trace``.

RPD knows no agents beyond a GPU number, no registers and no counters; those stay unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, Agent, HostRange, Kernel, Process, TraceSource
from rpl_core.values import frozen
from rpl_rocprofv3.database import Tables
from rpl_rocprofv3.readers.columns import (
    Geometry,
    display_name,
    distinct_ids,
    handle_value,
    plain_symbol,
    positions,
    taken,
)
from rpl_rocprofv3.readers.sqlite import read_integers
from rpl_rocprofv3.readers.trace import TraceParts, assembled
from rpl_rocprofv3.readers.trace.tables import (
    CopyRows,
    DispatchRows,
    Findings,
    direction_name,
    no_arguments,
    ordered_api_calls,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from rpl_core.model.trace import ApiCalls, Int32Column, Int64Column, Trace, UInt64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.sqlite import IntegerColumns

#: RPD does not say on which machine it was recorded; files of one set share a clock
#: (docs/reference/formats.md, 3).
RPD_NODE = "node"


def read_rpd(database: Database, reader: str, form: str) -> Trace:
    """Read a whole RPD database."""
    return _RpdFile(database).trace(reader, form)


class _RpdFile:
    """The tables of one file, read once, and the trace made of them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.findings = Findings(database.path)
        self.tables = Tables(database.connection)
        self.strings = self._strings()
        self.calls = read_calls(database, self.tables, self.strings, self.findings)
        self.operations = read_operations(database, self.tables, self.strings, self.findings)
        self.pids = distinct_ids(self.calls.raw["pid"])
        self.gpus = distinct_ids(self.operations.raw["gpuId"])

    def _strings(self) -> dict[int, str]:
        table = self.tables.get("rocpd_string")
        assert table is not None  # the identity check asked for it
        rows = table.rows(self.database.connection, ("id", "string"))
        return {row[0]: str(row[1]) for row in rows if isinstance(row[0], int)}

    def trace(self, reader: str, form: str) -> Trace:
        kernels, kernel_rows, stream_id = self._dispatch_rows()
        copies, copy_stream = self._copy_rows()
        process = self._process_of(self.calls.raw["id"])
        calls = hip_calls(self.calls, process, self.strings, self.findings)
        parts = TraceParts(
            source=TraceSource(reader, form, (str(self.database.path),)),
            processes=self._processes(),
            agents=tuple(Agent(RPD_NODE, gpu, "GPU") for gpu in self.gpus.tolist()),
            kernels=kernels,
            rows=kernel_rows,
            stream_id=stream_id,
            queue_id=self.operations.raw["queueId"][self.operations.is_kernel],
            copies=(copies, copy_stream),
            calls=None if calls is None else (calls, self.calls.functions),
            ranges=tuple(user_ranges(self.calls, self.database.path.name, self.strings)),
        )
        return assembled(parts, lambda _: None, self.findings)

    def _processes(self) -> tuple[Process, ...]:
        # RPD has no guid; the file name tells ranks apart.
        guid = self.database.path.name
        pids = self.pids.tolist() or [NOT_RECORDED]
        return tuple(Process(guid=guid, pid=pid, node=RPD_NODE) for pid in pids)

    def _process_of(self, api: Int64Column) -> Int32Column:
        """Process index of the calls; the only process where the call is unknown."""
        pid = taken(self.calls.raw["pid"], positions(api, self.calls.raw["id"]))
        rows = positions(pid, self.pids)
        return np.maximum(rows, 0) if len(self.pids) <= 1 else rows

    def _dispatch_rows(self) -> tuple[tuple[Kernel, ...], DispatchRows, Int64Column]:
        chosen = self.operations.is_kernel
        raw, api = self.operations.raw, self.operations.api[chosen]
        launches = read_launches(self.database, self.tables, self.calls)
        used = distinct_ids(self.operations.name_id[chosen])
        nothing = np.empty(0, np.int32)
        rows = DispatchRows(
            process=self._process_of(api),
            agent=positions(raw["gpuId"][chosen], self.gpus),
            kernel=positions(self.operations.name_id[chosen], used),
            stream=nothing,
            queue=nothing,
            dispatch_id=raw["id"][chosen],
            correlation_id=api,
            begin_ns=raw.wide("start")[chosen],
            end_ns=raw.wide("end")[chosen],
            geometry=launches.geometry(api),
        )
        without = int((rows.geometry.grid[0] < 0).sum())
        self.findings.add(
            "dispatch.no_geometry",
            without,
            "dispatch has no launch geometry",
            "dispatches have no launch geometry",
            cause="RPD does not record it for kernels of graphs and for memory fills",
        )
        stream = launches.stream(api)
        # Kernels of a graph have no launch of their own; they carry the stream of the graph launch.
        of_call = self.calls.stream_of(api, self.strings)
        return self._kernels(used), rows, np.where(stream < 0, of_call, stream)

    def _kernels(self, used: Int64Column) -> tuple[Kernel, ...]:
        names = [self.strings.get(i, f"unknown kernel (id {i})") for i in used.tolist()]
        process = 0 if len(self.pids) <= 1 else NOT_RECORDED
        return tuple(
            Kernel(display_name(n), plain_symbol(n) if n.startswith("_Z") else None, process) for n in names
        )

    def _copy_rows(self) -> tuple[CopyRows, Int64Column]:
        chosen = self.operations.is_copy
        raw, api = self.operations.raw, self.operations.api[chosen]
        table = self.tables.get("rocpd_copyapi")
        assert table is not None  # the identity check asked for it
        call = read_integers(self.database, table, ("api_ptr_id", "size"))
        streams = stream_ids([row[0] for row in table.rows(self.database.connection, ("stream",))])
        row = positions(api, call["api_ptr_id"])
        kind = raw["opType_id"][chosen]
        used = distinct_ids(kind)
        names = [self.strings[i] for i in used.tolist()]
        gpu = positions(raw["gpuId"][chosen], self.gpus)
        number = positions(kind, used)
        rows = CopyRows(
            process=self._process_of(api),
            source_agent=_where(gpu, number, [name.startswith("CopyDevice") for name in names]),
            destination_agent=_where(gpu, number, [name.endswith("Device") for name in names]),
            stream=np.empty(0, np.int32),
            direction=number,
            size_bytes=taken(call["size"], row),
            correlation_id=api,
            begin_ns=raw.wide("start")[chosen],
            end_ns=raw.wide("end")[chosen],
            directions=tuple(direction_name(name) for name in names),
        )
        return rows, taken(streams, row)


def _where(gpu: Int32Column, number: Int32Column, involved: list[bool]) -> Int32Column:
    """The GPU that executed the copy where its side of the copy is a device, else -1 (host)."""
    return np.where(np.array([*involved, False])[number], gpu, NOT_RECORDED).astype(np.int32)


# Host-side calls of an RPD database: ``rocpd_api`` with stream handles from the argument texts.

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


# Launch geometry of RPD kernels, always as work-items.
#
# RPD stores what the API call was given: blocks for the hipLaunchKernel family, work-items for
# hipExtModuleLaunchKernel and its predecessor (docs/reference/formats.md, trap 2).

_TAKES_WORK_ITEMS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
_WORKGROUP = ("workgroupX", "workgroupY", "workgroupZ")
_GRID = ("gridX", "gridY", "gridZ")


@frozen(eq=False)
class LaunchTable:
    """Rows of ``rocpd_kernelapi`` by API call."""

    raw: IntegerColumns
    stream_id: Int64Column
    in_work_items: Int32Column  # 1 where the grid counts work-items, 0 where blocks

    def geometry(self, api: Int64Column) -> Geometry:
        """Geometry of the kernels that the calls ``api`` launched."""
        row = positions(api, self.raw["api_ptr_id"])
        workgroup = tuple(taken(self.raw[name], row) for name in _WORKGROUP)
        scale = taken(self.in_work_items.astype(np.int64), row)
        grid = tuple(
            np.where(scale == 0, _product(size, group), size)
            for size, group in zip((taken(self.raw[name], row) for name in _GRID), workgroup, strict=True)
        )
        return Geometry(
            (workgroup[0], workgroup[1], workgroup[2]),
            (grid[0], grid[1], grid[2]),
            taken(self.raw["groupSegmentSize"], row),
            taken(self.raw["privateSegmentSize"], row),
        )

    def stream(self, api: Int64Column) -> Int64Column:
        return taken(self.stream_id, positions(api, self.raw["api_ptr_id"]))


def _product(blocks: Int64Column, workgroup: Int64Column) -> Int64Column:
    # Sizes beyond 32 bits are impossible and are kept so that the shape check sees them.
    possible = (blocks >= 0) & (blocks <= 0xFFFF_FFFF) & (workgroup >= 0) & (workgroup <= 0xFFFF)
    return np.where(possible, blocks * workgroup, blocks)


def read_launches(database: Database, tables: Tables, calls: RpdCalls) -> LaunchTable:
    """Read ``rocpd_kernelapi``."""
    table = tables.get("rocpd_kernelapi")
    assert table is not None  # the identity check asked for it
    columns = ("api_ptr_id", *_GRID, *_WORKGROUP, "groupSegmentSize", "privateSegmentSize")
    raw = read_integers(database, table, columns)
    name = calls.name_of(raw["api_ptr_id"])
    functions = [i for i, function in enumerate(calls.functions) if function in _TAKES_WORK_ITEMS]
    in_work_items = (positions(name.astype(np.int64), functions) >= 0).astype(np.int32)
    texts = [row[0] for row in table.rows(database.connection, ("stream",))]
    return LaunchTable(raw, stream_ids(texts), in_work_items)


def stream_ids(texts: list[object]) -> Int64Column:
    """Stream pointers as ids; RPD has no other stream identity. -1 where there is no pointer."""
    known: dict[object, int] = {}
    for text in texts:
        if text not in known:
            value = handle_value(text)
            known[text] = value if value is not None and value < 1 << 63 else NOT_RECORDED
    return np.fromiter((known[text] for text in texts), np.int64, len(texts))


# GPU operations of an RPD database: which are kernels, which are copies, and which call made them.
#
# Operation types are strings (docs/reference/formats.md, 3). Kernels that a graph launched appear as ``Task``
# with the kernel name but without geometry; ``FillBuffer`` is the fill kernel of a memset.

_COPY_PREFIX = "Copy"
# Packets of the queue that execute nothing on the compute units.
_NO_WORK_PREFIXES = ("Barrier", "Marker")


@frozen(eq=False)
class Operations:
    """All operations in file order; ``api`` is the row id of the launching call, -1 if unknown."""

    raw: IntegerColumns
    api: Int64Column
    name_id: Int64Column  # description, or the operation type where there is none
    is_copy: NDArray[np.bool_]
    is_kernel: NDArray[np.bool_]


def read_operations(
    database: Database, tables: Tables, strings: Mapping[int, str], findings: Findings
) -> Operations:
    """Read ``rocpd_op`` with its links to API calls."""
    table, links = tables.get("rocpd_op"), tables.get("rocpd_api_ops")
    assert table is not None  # the identity check
    assert links is not None  # asked for both
    columns = ("id", "gpuId", "queueId", "start", "end", "description_id", "opType_id")
    raw = read_integers(database, table, columns)
    link = read_integers(database, links, ("api_id", "op_id"))
    findings.add(
        "dispatch.unreadable_values",
        raw.unreadable + link.unreadable,
        "value in rocpd_op or rocpd_api_ops is no integer and counts as not recorded",
        "values in rocpd_op or rocpd_api_ops are no integers and count as not recorded",
    )
    described = np.array([i for i, text in sorted(strings.items()) if text], np.int64)
    kind = raw["opType_id"]
    is_copy = _of_type(kind, strings, lambda text: text.startswith(_COPY_PREFIX))
    idle = _of_type(kind, strings, lambda text: text.startswith(_NO_WORK_PREFIXES))
    return Operations(
        raw=raw,
        api=_launching_call(raw["id"], link),
        name_id=np.where(positions(raw["description_id"], described) >= 0, raw["description_id"], kind),
        is_copy=is_copy,
        is_kernel=~is_copy & ~idle,
    )


def _of_type(
    kind: Int64Column, strings: Mapping[int, str], accepts: Callable[[str], bool]
) -> NDArray[np.bool_]:
    wanted = [i for i in distinct_ids(kind).tolist() if accepts(strings.get(i, ""))]
    return positions(kind, wanted) >= 0


def _launching_call(operation: Int64Column, link: IntegerColumns) -> Int64Column:
    ids, first = np.unique(link["op_id"], return_index=True)
    place: Int32Column = positions(operation, ids)
    if not len(ids):
        return np.full(len(operation), NOT_RECORDED, np.int64)
    return np.where(place < 0, NOT_RECORDED, link["api_id"][first][place])
