"""Copies by the copy engines: the rows of ``rocpd_memory_copy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_rocprofv3.readers.copy_table import CopyRows, direction_name
from rpl_rocprofv3.readers.id_lookup import distinct_ids, positions
from rpl_rocprofv3.readers.integer_columns import read_integers
from rpl_rocprofv3.readers.rocpd_info import read_strings

if TYPE_CHECKING:
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.id_lookup import IntegerColumn
    from rpl_rocprofv3.readers.rocpd_events import Events
    from rpl_rocprofv3.readers.rocpd_info import Agents, Processes
    from rpl_rocprofv3.readers.rocpd_parts import Part
    from rpl_rocprofv3.readers.sqlite_file import Database

__all__ = ["read_copies"]

_COLUMNS = (
    *("pid", "start", "end", "name_id", "dst_agent_id", "src_agent_id", "size", "stream_id", "event_id"),
)


def read_copies(
    database: Database, part: Part, events: Events, processes: Processes, agents: Agents, findings: Findings
) -> tuple[CopyRows, IntegerColumn] | None:
    """Read all copies with their stream ids; None when there are none (a kernel trace has an empty table)."""
    table = part.table("memory_copy")
    if table is None:
        return None
    raw = read_integers(database, table, _COLUMNS)
    if not len(raw):
        return None
    findings.add("copy.unreadable_values", raw.unreadable, "values in rocpd_memory_copy are no integers")
    names = read_strings(part, raw["name_id"])
    used = distinct_ids(raw["name_id"])
    process = processes.positions(raw["pid"])
    rows = CopyRows(
        process=np.maximum(process, 0) if len(processes.ids) == 1 else process,
        source_agent=agents.positions(raw["src_agent_id"]),
        destination_agent=agents.positions(raw["dst_agent_id"]),
        stream=np.empty(0, np.int32),
        direction=positions(raw["name_id"], used),
        size_bytes=raw.wide("size"),
        correlation_id=events.stack_id_at(events.positions(raw["event_id"])),
        begin_ns=raw.wide("start"),
        end_ns=raw.wide("end"),
        directions=tuple(direction_name(names.get(i, "UNKNOWN")) for i in used.tolist()),
    )
    return rows, raw["stream_id"]
