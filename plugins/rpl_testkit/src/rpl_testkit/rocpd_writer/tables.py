"""The tables of rocpd schema 3.0.0 to 3.0.5 with their columns in the recorded order, and as SQL.

Also how a view over them is described; the views themselves stand in ``views``.
"""

from __future__ import annotations

from typing import Final

import attrs

from rpl_core.errors import UsageError
from rpl_core.values import frozen

SCHEMA_VERSIONS: Final = ("3", "3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.5")


def patch_level(schema_version: str) -> int:
    """Return N of `3.0.N`; `"3"` (what ROCm 7.0 to 7.2 records) is level 0."""
    if schema_version not in SCHEMA_VERSIONS:
        raise UsageError(
            f"rocpd schema version {schema_version!r} is not one that can be written",
            next_step=f"use one of {', '.join(SCHEMA_VERSIONS)}",
        )
    return 0 if schema_version == "3" else int(schema_version.rsplit(".", 1)[1])


def recorded_version(schema_version: str) -> str:
    """Return the text for `rocpd_metadata`: 3.0.0 files of ROCm 7.0 to 7.2 say just `3`."""
    return "3" if patch_level(schema_version) == 0 else schema_version


# How a rocpd table is described, and its description rendered as SQL.
#
# Here are columns, versions and the suffix that every physical table carries; the tables themselves follow
# below.


@frozen
class Column:
    """One column: declared type, constraint text, and the table whose id it refers to."""

    name: str
    type: str
    constraint: str = ""
    refers_to: str | None = None
    since: int = 0


@frozen
class Table:
    """A table by its plain name (`rocpd_string`), with the patch level that introduced it."""

    name: str
    columns: tuple[Column, ...]
    since: int = 0
    has_guid: bool = True

    def columns_at(self, level: int) -> tuple[Column, ...]:
        """Return the columns, without id and guid, that exist at patch level `level`."""
        return tuple(column for column in self.columns if column.since <= level)


def quoted(name: str) -> str:
    """Quote an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def create_table(table: Table, level: int, guid: str, suffix: str) -> str:
    """Return the CREATE TABLE statement of the physical table `<name><suffix>`."""
    lines = ['"id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT']
    if table.has_guid:
        lines.append(f'"guid" TEXT NOT NULL DEFAULT {_literal(guid)}')
    columns = table.columns_at(level)
    lines += [f"{quoted(c.name)} {c.type} {_constraint_at(c, level)}".rstrip() for c in columns]
    lines += [
        f'FOREIGN KEY ({quoted(c.name)}) REFERENCES {quoted(c.refers_to + suffix)} ("id") ON UPDATE CASCADE'
        for c in columns
        if c.refers_to
    ]
    body = ",\n  ".join(lines)
    return f"CREATE TABLE {quoted(table.name + suffix)} (\n  {body}\n)"


def _constraint_at(column: Column, level: int) -> str:
    # Agents and counters of network cards are allowed from schema 3.0.1 on (docs/reference/formats.md, 2.2).
    return column.constraint.replace("'GPU')", "'GPU', 'NIC')") if level >= 1 else column.constraint


def create_plain_view(table: Table, suffix: str) -> str:
    """Return the view that gives the table its plain name."""
    # S608: both names are constants of this package plus the guid, and quoted.
    return f"CREATE VIEW {quoted(table.name)} AS SELECT * FROM {quoted(table.name + suffix)}"


# How a data view is described, and its description rendered as SQL.


@frozen
class Join:
    """A join on `alias.column = on` with equal guid; `keep` keeps rows without a partner."""

    table: str
    alias: str
    on: str
    column: str = "id"
    keep: bool = False


@frozen
class View:
    """A view over `base` with result columns as name to expression, in order."""

    name: str
    base: str
    alias: str
    joins: tuple[Join, ...]
    columns: dict[str, str]
    tail: str = ""
    since: int = 0
    columns_since: dict[str, int] = attrs.field(factory=dict)

    def columns_at(self, level: int) -> dict[str, str]:
        """Return the columns that exist at patch level `level`."""
        return {name: sql for name, sql in self.columns.items() if self.columns_since.get(name, 0) <= level}


@frozen
class SqlView:
    """A view that is no join of tables, given as its whole SELECT."""

    name: str
    select: str
    since: int = 0


def must(table: str, alias: str, on: str, column: str = "id") -> Join:
    """Join that drops rows without a partner, as the real views do (docs/reference/formats.md, trap 7)."""
    return Join(f"rocpd_{table}", alias, on, column)


def left(table: str, alias: str, on: str) -> Join:
    """Join that keeps rows without a partner."""
    return Join(f"rocpd_{table}", alias, on, keep=True)


def same(alias: str, names: str) -> dict[str, str]:
    """Return the columns `names` of `alias` under their own names."""
    return {name: f"{alias}.{quoted(name)}" for name in names.split()}


def create_view(view: View | SqlView, level: int) -> str:
    """Return the CREATE VIEW statement at patch level `level`."""
    if isinstance(view, SqlView):
        return f"CREATE VIEW {quoted(view.name)} AS\n{view.select}"
    columns = ",\n  ".join(f"{sql} AS {quoted(name)}" for name, sql in view.columns_at(level).items())
    lines = [f"SELECT\n  {columns}", f"FROM {view.base} AS {view.alias}"]
    for join in view.joins:
        kind = "LEFT JOIN" if join.keep else "JOIN"
        owner = join.on.split(".", 1)[0]
        match = f"{join.alias}.{join.column} = {join.on} AND {join.alias}.guid = {owner}.guid"
        lines.append(f"{kind} {join.table} AS {join.alias} ON {match}")
    if view.tail:
        lines.append(view.tail)
    return f"CREATE VIEW {quoted(view.name)} AS\n" + "\n".join(lines)


# The tables of rocpd schema 3 with their columns in the recorded order.
#
# Column facts come from a real recording of schema 3 (gfx1250) and, for later patch levels, from the
# published schema history. `rocpd_hip_event` (3.0.4) is the one table whose column order is not confirmed
# by a recording. id and guid are common to all tables and added by `create_table`.

_NODE = Column("nid", "INTEGER", "NOT NULL", "rocpd_info_node")
_PROCESS = Column("pid", "INTEGER", "NOT NULL", "rocpd_info_process")
_THREAD = Column("tid", "INTEGER", refers_to="rocpd_info_thread")
_EVENT = Column("event_id", "INTEGER", refers_to="rocpd_event")
_START = Column("start", "BIGINT", "NOT NULL")
_END = Column("end", "BIGINT", "NOT NULL")
_EXTDATA = Column("extdata", "JSONB", "NOT NULL DEFAULT '{}'")
_GRAPH = (
    Column("graph_exec_id", "INTEGER", "NOT NULL DEFAULT 0", since=2),
    Column("graph_node_id", "INTEGER", "NOT NULL DEFAULT 0", since=2),
)


def _columns_of(sql_type: str, names: str, constraint: str = "") -> tuple[Column, ...]:
    return tuple(Column(name, sql_type, constraint) for name in names.split())


def _one_of(name: str, *values: str) -> Column:
    allowed = ", ".join(f"'{value}'" for value in values)
    return Column(name, "TEXT", f'CHECK ("{name}" IN ({allowed}))')


def _link(name: str, table: str, constraint: str = "") -> Column:
    return Column(name, "INTEGER", constraint, table)


_INFO_TABLES = (
    Table(
        "rocpd_info_node",
        (
            Column("hash", "BIGINT", "NOT NULL UNIQUE"),
            Column("machine_id", "TEXT", "NOT NULL UNIQUE"),
            *_columns_of("TEXT", "system_name hostname release version hardware_name domain_name"),
        ),
    ),
    Table(
        "rocpd_info_process",
        (
            _NODE,
            Column("ppid", "INTEGER"),
            Column("pid", "INTEGER", "NOT NULL"),
            *_columns_of("BIGINT", "init fini start end"),
            Column("command", "TEXT"),
            Column("environment", "JSONB", "NOT NULL DEFAULT '{}'"),
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_info_thread",
        (
            _NODE,
            Column("ppid", "INTEGER"),
            _PROCESS,
            Column("tid", "INTEGER", "NOT NULL"),
            Column("name", "TEXT"),
            *_columns_of("BIGINT", "start end"),
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_info_agent",
        (
            _NODE,
            _PROCESS,
            _one_of("type", "CPU", "GPU"),
            *_columns_of("INTEGER", "absolute_index logical_index type_index uuid"),
            *_columns_of("TEXT", "name model_name vendor_name product_name user_name"),
            _EXTDATA,
        ),
    ),
    Table("rocpd_info_queue", (_NODE, _PROCESS, Column("name", "TEXT"), _EXTDATA)),
    Table("rocpd_info_stream", (_NODE, _PROCESS, Column("name", "TEXT"), _EXTDATA)),
    Table(
        "rocpd_info_pmc",
        (
            _NODE,
            _PROCESS,
            _link("agent_id", "rocpd_info_agent"),
            _one_of("target_arch", "CPU", "GPU"),
            Column("event_code", "INT"),
            Column("instance_id", "INTEGER"),
            *_columns_of("TEXT", "name symbol", "NOT NULL"),
            Column("description", "TEXT"),
            Column("long_description", "TEXT", "DEFAULT ''"),
            Column("component", "TEXT"),
            Column("units", "TEXT", "DEFAULT ''"),
            _one_of("value_type", "ABS", "ACCUM", "RELATIVE"),
            *_columns_of("TEXT", "block expression"),
            *_columns_of("INTEGER", "is_constant is_derived"),
            Column("spm_support", "INTEGER", since=3),
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_info_code_object",
        (
            _NODE,
            _PROCESS,
            _link("agent_id", "rocpd_info_agent"),
            Column("uri", "TEXT"),
            *_columns_of("BIGINT", "load_base load_size load_delta"),
            _one_of("storage_type", "FILE", "MEMORY"),
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_info_kernel_symbol",
        (
            _NODE,
            _PROCESS,
            _link("code_object_id", "rocpd_info_code_object", "NOT NULL"),
            *_columns_of("TEXT", "kernel_name display_name"),
            *_columns_of("INTEGER", "kernel_object kernarg_segment_size kernarg_segment_alignment"),
            *_columns_of("INTEGER", "group_segment_size private_segment_size"),
            *_columns_of("INTEGER", "sgpr_count arch_vgpr_count accum_vgpr_count"),
            _EXTDATA,
        ),
    ),
)

_EVENT_TABLES = (
    Table(
        "rocpd_track",
        (_NODE, _link("pid", "rocpd_info_process"), _THREAD, _link("name_id", "rocpd_string"), _EXTDATA),
    ),
    Table(
        "rocpd_event",
        (
            _link("category_id", "rocpd_string"),
            *_columns_of("INTEGER", "stack_id parent_stack_id correlation_id"),
            *_columns_of("JSONB", "call_stack line_info extdata", "NOT NULL DEFAULT '{}'"),
        ),
    ),
    Table(
        "rocpd_arg",
        (
            _link("event_id", "rocpd_event", "NOT NULL"),
            Column("position", "INTEGER", "NOT NULL"),
            *_columns_of("TEXT", "type name", "NOT NULL"),
            Column("value", "TEXT"),
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_pmc_event",
        (
            _EVENT,
            Column("sample_id", "INTEGER", refers_to="rocpd_sample", since=3),
            _link("pmc_id", "rocpd_info_pmc", "NOT NULL"),
            Column("value", "REAL", "DEFAULT 0.0"),
            Column("xcc", "INTEGER", since=3),
            Column("shader_engine", "INTEGER", since=3),
            Column("shader_array", "INTEGER", since=5),
            Column("wgp", "INTEGER", since=5),
            Column("instance", "INTEGER", since=3),
            Column("extdata", "JSONB", "DEFAULT '{}'"),
        ),
    ),
    Table(
        "rocpd_region",
        (
            _NODE,
            _PROCESS,
            _link("tid", "rocpd_info_thread", "NOT NULL"),
            _START,
            _END,
            _link("name_id", "rocpd_string", "NOT NULL"),
            _EVENT,
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_sample",
        (
            _link("track_id", "rocpd_track", "NOT NULL"),
            Column("timestamp", "BIGINT", "NOT NULL"),
            _EVENT,
            _EXTDATA,
        ),
    ),
)

_WORK_TABLES = (
    Table(
        "rocpd_kernel_dispatch",
        (
            _NODE,
            _PROCESS,
            _THREAD,
            _link("agent_id", "rocpd_info_agent", "NOT NULL"),
            _link("kernel_id", "rocpd_info_kernel_symbol", "NOT NULL"),
            Column("dispatch_id", "INTEGER", "NOT NULL"),
            _link("queue_id", "rocpd_info_queue", "NOT NULL"),
            _link("stream_id", "rocpd_info_stream", "NOT NULL"),
            _START,
            _END,
            *_columns_of("INTEGER", "private_segment_size group_segment_size"),
            *_columns_of("INTEGER", "workgroup_size_x workgroup_size_y workgroup_size_z", "NOT NULL"),
            *_columns_of("INTEGER", "grid_size_x grid_size_y grid_size_z", "NOT NULL"),
            *_GRAPH,
            _link("region_name_id", "rocpd_string"),
            _EVENT,
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_memory_copy",
        (
            _NODE,
            _PROCESS,
            _THREAD,
            _START,
            _END,
            _link("name_id", "rocpd_string", "NOT NULL"),
            _link("dst_agent_id", "rocpd_info_agent"),
            Column("dst_address", "INTEGER"),
            _link("src_agent_id", "rocpd_info_agent"),
            Column("src_address", "INTEGER"),
            Column("size", "INTEGER", "NOT NULL"),
            _link("queue_id", "rocpd_info_queue"),
            _link("stream_id", "rocpd_info_stream"),
            *_GRAPH,
            _link("region_name_id", "rocpd_string"),
            _EVENT,
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_memory_allocate",
        (
            _NODE,
            _PROCESS,
            _THREAD,
            _link("agent_id", "rocpd_info_agent"),
            _one_of("type", "ALLOC", "FREE", "REALLOC", "RECLAIM"),
            _one_of("level", "REAL", "VIRTUAL", "SCRATCH"),
            _START,
            _END,
            Column("address", "INTEGER"),
            Column("size", "INTEGER", "NOT NULL"),
            _link("queue_id", "rocpd_info_queue"),
            _link("stream_id", "rocpd_info_stream"),
            _EVENT,
            _EXTDATA,
        ),
    ),
    Table(
        "rocpd_graph_launch",
        (
            _NODE,
            _PROCESS,
            _THREAD,
            _link("agent_id", "rocpd_info_agent"),
            _link("queue_id", "rocpd_info_queue"),
            _START,
            _END,
            Column("graph_exec_id", "INTEGER", "NOT NULL"),
            Column("kernel_dispatch_count", "INTEGER", "NOT NULL DEFAULT 0"),
            _EVENT,
            _EXTDATA,
        ),
        since=2,
    ),
    Table(
        "rocpd_hip_event",
        (
            _NODE,
            _PROCESS,
            _THREAD,
            _link("agent_id", "rocpd_info_agent"),
            _link("name_id", "rocpd_string", "NOT NULL"),
            Column("hip_event_handle", "INTEGER"),
            _link("queue_id", "rocpd_info_queue"),
            _link("source_queue_id", "rocpd_info_queue"),
            _START,
            _END,
            _EVENT,
            _EXTDATA,
        ),
        since=4,
    ),
)

TABLES: Final = (
    Table("rocpd_metadata", _columns_of("TEXT", "tag value", "NOT NULL"), has_guid=False),
    Table("rocpd_string", (Column("string", "TEXT", "NOT NULL UNIQUE ON CONFLICT ABORT"),)),
    *_INFO_TABLES,
    *_EVENT_TABLES,
    *_WORK_TABLES,
)


def tables_at(level: int) -> tuple[Table, ...]:
    """Return the tables that exist at patch level `level`, in creation order."""
    return tuple(table for table in TABLES if table.since <= level)
