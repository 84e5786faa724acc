"""rpl's own writer for rocpd schema 3, the SQLite format of rocprofv3.

Used by the test kit, the demo and emulated devices. `write_rocpd` takes plain rows (`rows.py`) and writes
a file whose tables, views and columns equal those of a real recording. The package `synthetic_recording`
plays a small MI300X program for it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from rpl_core.errors import RplError, UsageError
from rpl_core.model.metric import ORIGIN_MARK, SYNTHETIC_COMMAND_MARK
from rpl_testkit.rocpd_writer.inserts import (
    CounterInsert,
    Events,
    Strings,
    TableInsert,
    WorkInsert,
    write_info,
)
from rpl_testkit.rocpd_writer.rows import (
    AgentRow,
    AllocationRow,
    CodeObjectRow,
    CopyRow,
    CounterDefinitionRow,
    CounterRow,
    DispatchRow,
    GraphLaunchRow,
    HipEventRow,
    KernelRow,
    NodeRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamedCounterRow,
    StreamRow,
)
from rpl_testkit.rocpd_writer.tables import (
    SCHEMA_VERSIONS,
    SqlView,
    View,
    create_plain_view,
    create_table,
    create_view,
    patch_level,
    recorded_version,
    tables_at,
)
from rpl_testkit.rocpd_writer.views import (
    INFO_VIEWS,
    REGION_VIEWS,
    SUMMARY_VIEWS,
    WORK_VIEWS,
    counter_views,
)

__all__ = [
    "SCHEMA_VERSIONS",
    "AgentRow",
    "AllocationRow",
    "CodeObjectRow",
    "CopyRow",
    "CounterDefinitionRow",
    "CounterRow",
    "DispatchRow",
    "GraphLaunchRow",
    "HipEventRow",
    "KernelRow",
    "NodeRow",
    "ProcessRow",
    "QueueRow",
    "RegionArgument",
    "RegionRow",
    "RocpdContents",
    "StreamRow",
    "StreamedCounterRow",
    "guid_from_seed",
    "write_rocpd",
]


def guid_from_seed(seed: str | int) -> str:
    """Return a UUIDv7-shaped text whose leading digits are small, as in files seeded by boot time.

    The profiler derives the time part from nanoseconds since boot, so it is no wall time
    (docs/reference/formats.md, 2.1).
    """
    digits = hashlib.sha256(f"rpl rocpd guid {seed}".encode()).hexdigest()
    variant = "89ab"[int(digits[4], 16) % 4]
    return f"000000{digits[:2]}-{digits[5:9]}-7{digits[9:12]}-{variant}{digits[12:15]}-{digits[15:27]}"


# Create an empty rocpd file: tables with their suffix, plain-name views and data views.


def table_suffix(guid: str) -> str:
    """Return what is appended to every physical table name: `_` + guid with underscores."""
    return "_" + guid.replace("-", "_")


def create_schema(connection: sqlite3.Connection, level: int, guid: str) -> None:
    """Create all tables and views of patch level `level` in an empty database."""
    suffix = table_suffix(guid)
    tables = tables_at(level)
    for table in tables:
        connection.execute(create_table(table, level, guid, suffix))
    for table in tables:
        connection.execute(create_plain_view(table, suffix))
    views: tuple[View | SqlView, ...] = (
        *INFO_VIEWS,
        *REGION_VIEWS,
        *WORK_VIEWS,
        *counter_views(level),
        *SUMMARY_VIEWS,
    )
    for view in views:
        if view.since <= level:
            connection.execute(create_view(view, level))


# Write a recording as one file: complete or not at all.


def write_rocpd(path: Path, contents: RocpdContents, *, synthetic: bool, schema_version: str = "3") -> None:
    """Write `contents` to `path`, replacing what was there.

    `schema_version` is "3" (ROCm 7.0 to 7.2) or "3.0.0" to "3.0.5"; rows that a version can't hold are an
    error. Raises `UsageError` for contents that contradict themselves or the version and `RplError` when
    the file can't be written. Same contents and version give the same bytes.
    """
    level = patch_level(schema_version)
    for name, since in (("graph_launches", 2), ("streamed_counters", 3), ("hip_events", 4)):
        if getattr(contents, name) and level < since:
            raise UsageError(
                f"{name} need rocpd schema 3.0.{since}, not {schema_version}",
                next_step=f"write with schema_version='3.0.{since}' or later",
            )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        _write_file(temporary, contents, level, recorded_version(schema_version), synthetic=synthetic)
        temporary.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise RplError(
            f"can't write {path}: {error}", next_step="check free space and permissions"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _write_file(
    temporary: Path, contents: RocpdContents, level: int, version: str, *, synthetic: bool
) -> None:
    with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
        # The rename makes the file appear whole, so neither journal nor sync is needed.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        create_schema(connection, level, contents.guid)
        _fill(connection, contents, level, version, synthetic=synthetic)
        connection.execute("COMMIT")


def _fill(
    connection: sqlite3.Connection, contents: RocpdContents, level: int, version: str, *, synthetic: bool
) -> None:
    strings = Strings()
    events = Events(strings)
    suffix = table_suffix(contents.guid)
    insert = TableInsert(connection, suffix, events)
    tags = [("schema_version", version), ("uuid", suffix), ("guid", contents.guid)]
    insert.rows("rocpd_metadata", "tag value", [*tags, (ORIGIN_MARK, "synthetic")] if synthetic else tags)
    mark = SYNTHETIC_COMMAND_MARK if synthetic else ""
    write_info(insert, contents, mark + contents.process.command)
    work = WorkInsert(insert, strings, events, contents, level)
    work.write_regions()
    work.write_dispatches(keep_links=bool(contents.counters) or bool(contents.streamed_counters))
    work.write_copies()
    work.write_allocations()
    if level >= 2:
        work.write_graph_launches()
    if level >= 4:
        work.write_hip_events()
    CounterInsert(insert, contents, work.links, level).write()
    insert.rows("rocpd_string", "id string", strings.rows())
