"""One RPD database (one rank) as a ``Trace``.

RPD knows no agents beyond a GPU number, no registers and no counters; those stay unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED, Agent, Kernel, Process, TraceSource
from rpl_rocprofv3.readers.columns.id_lookup import distinct_ids, positions, taken
from rpl_rocprofv3.readers.columns.kernel_names import display_name, plain_symbol
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.rpd.calls import hip_calls, read_calls, user_ranges
from rpl_rocprofv3.readers.rpd.geometry import read_launches, stream_ids
from rpl_rocprofv3.readers.rpd.operations import read_operations
from rpl_rocprofv3.readers.sqlite.integer_columns import read_integers
from rpl_rocprofv3.readers.sqlite.tables import Tables
from rpl_rocprofv3.readers.trace.copy_table import CopyRows, direction_name
from rpl_rocprofv3.readers.trace.dispatch_table import DispatchRows
from rpl_rocprofv3.readers.trace.parts import TraceParts, assembled

if TYPE_CHECKING:
    from rpl_core.model.trace import Int32Column, Int64Column, Trace
    from rpl_rocprofv3.database import Database

__all__ = ["RPD_NODE", "read_rpd"]

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
