"""Data views of a rocpd file: how one is described, and those on the machine and the summaries."""

from __future__ import annotations

from typing import Final

import attrs

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.schema.tables import quoted


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


# Joins and column groups that several data views share.

CATEGORY: Final = {"category": "category.string"}
CORRELATION: Final = {**same("event", "stack_id parent_stack_id"), "corr_id": "event.correlation_id"}


def event_of(alias: str) -> tuple[Join, ...]:
    """Join the event of `alias` and the text of its category."""
    return (must("event", "event", f"{alias}.event_id"), category_of("event"))


def category_of(event: str) -> Join:
    """Join the category text; an event without one is kept."""
    return left("string", "category", f"{event}.category_id")


def process_thread(alias: str) -> tuple[Join, ...]:
    """Join process and thread of `alias`; rows that lack either disappear."""
    return (must("info_process", "process", f"{alias}.pid"), must("info_thread", "thread", f"{alias}.tid"))


def agent_columns(alias: str, prefix: str = "agent") -> dict[str, str]:
    """Return the four index and type columns of an agent under `prefix`."""
    return {
        f"{prefix}_abs_index": f"{alias}.absolute_index",
        f"{prefix}_log_index": f"{alias}.logical_index",
        f"{prefix}_type_index": f"{alias}.type_index",
        f"{prefix}_type": f'{alias}."type"',
    }


def duration(alias: str) -> dict[str, str]:
    """Return begin, end and their difference, all ns."""
    return {**same(alias, "start end"), "duration": f'({alias}."end" - {alias}."start")'}


# Data views that describe the machine, processes, threads, counters and loaded code.

_SYSTEM = {
    "nid": "node.id",
    **same("node", "machine_id system_name hostname"),
    "system_release": "node.release",
    "system_version": "node.version",
}


def _json(source: str, fields: dict[str, str]) -> dict[str, str]:
    return {name: f"json_extract({source}.extdata, '$.{path}')" for name, path in fields.items()}


INFO_VIEWS: Final = (
    View(
        "code_objects",
        "rocpd_info_code_object",
        "code",
        (must("info_agent", "agent", "code.agent_id"), must("info_process", "process", "code.pid")),
        {
            **same("code", "id guid nid"),
            **same("process", "pid"),
            "agent_abs_index": "agent.absolute_index",
            **same("code", "uri load_base load_size load_delta"),
            "storage_type_str": "code.storage_type",
            **_json(
                "code",
                {
                    "code_object_size": "size",
                    "storage_type": "storage_type",
                    "memory_base": "memory_base",
                    "memory_size": "memory_size",
                },
            ),
        },
    ),
    View(
        "kernel_symbols",
        "rocpd_info_kernel_symbol",
        "symbol",
        (must("info_process", "process", "symbol.pid"),),
        {
            **same("symbol", "id guid nid"),
            **same("process", "pid"),
            **same("symbol", "code_object_id kernel_name display_name kernel_object"),
            **same("symbol", "kernarg_segment_size kernarg_segment_alignment"),
            **same("symbol", "group_segment_size private_segment_size"),
            **same("symbol", "sgpr_count arch_vgpr_count accum_vgpr_count"),
            **_json(
                "symbol",
                {
                    "kernel_symbol_size": "size",
                    "kernel_id": "kernel_id",
                    "kernel_code_entry_byte_offset": "kernel_code_entry_byte_offset",
                    "formatted_kernel_name": "formatted_kernel_name",
                    "demangled_kernel_name": "demangled_kernel_name",
                    "truncated_kernel_name": "truncated_kernel_name",
                    "kernel_address": "kernel_address.handle",
                },
            ),
        },
    ),
    View(
        "processes",
        "rocpd_info_process",
        "process",
        (must("info_node", "node", "process.nid"),),
        {**_SYSTEM, **same("process", "guid ppid pid init start end fini command")},
    ),
    View(
        "threads",
        "rocpd_info_thread",
        "thread",
        (must("info_process", "process", "thread.pid"), must("info_node", "node", "thread.nid")),
        {**_SYSTEM, **same("process", "guid ppid pid"), **same("thread", "tid start end name")},
    ),
    View(
        "pmc_info",
        "rocpd_info_pmc",
        "counter",
        (must("info_agent", "agent", "counter.agent_id"), must("info_process", "process", "counter.pid")),
        {
            **same("counter", "id guid nid"),
            **same("process", "pid"),
            "agent_abs_index": "agent.absolute_index",
            **same("counter", "is_constant is_derived name description block expression"),
        },
    ),
)


# Summary views. Their durations are microseconds, unlike everywhere else (docs/reference/formats.md, trap
# 1).
#
# `average` divides integers before it converts to microseconds, so it loses the fraction of a nanosecond.

# S608 below: the texts are put together from constants of this module, never from input.


_KERNEL_SPANS = """SELECT symbol.display_name AS name, dispatch."end" - dispatch.start AS span
    FROM rocpd_kernel_dispatch AS dispatch
    JOIN rocpd_info_kernel_symbol AS symbol
      ON symbol.id = dispatch.kernel_id AND symbol.guid = dispatch.guid"""


def _named_spans(table: str) -> str:
    return f"""SELECT label.string AS name, work."end" - work.start AS span
    FROM {table} AS work
    JOIN rocpd_string AS label ON label.id = work.name_id AND label.guid = work.guid"""


def _total(*tables: str) -> str:
    parts = " UNION ALL ".join(f'SELECT "end" - start AS span FROM {table}' for table in tables)
    return f"(SELECT sum(span) FROM ({parts}))"


def _ranking(spans: str, total: str) -> str:
    return f"""SELECT
  name,
  count(*) AS total_calls,
  sum(span) / 1000.0 AS total_duration,
  (sum(span) / count(*)) / 1000.0 AS average,
  sum(span) * 100.0 / {total} AS percentage
FROM ({spans})
GROUP BY name
ORDER BY total_duration DESC"""


_ALL_SPANS = f"""{_KERNEL_SPANS}
    UNION ALL {_named_spans("rocpd_memory_copy")}
    UNION ALL {_named_spans("rocpd_region")}"""

_BUSY = """WITH work AS (
  SELECT agent_id, guid, start, "end" FROM rocpd_kernel_dispatch
  UNION ALL
  SELECT dst_agent_id, guid, start, "end" FROM rocpd_memory_copy
), per_agent AS (
  SELECT agent_id, guid, sum("end" - start) AS busy_ns FROM work GROUP BY agent_id, guid
), whole AS (
  SELECT max("end") - min(start) AS wall_ns FROM work
)
SELECT
  per_agent.agent_id AS agent_id,
  agent."type" AS "type",
  per_agent.busy_ns AS "GpuTime",
  whole.wall_ns AS "WallTime",
  per_agent.busy_ns * 1.0 / whole.wall_ns AS "Busy"
FROM per_agent
CROSS JOIN whole
JOIN rocpd_info_agent AS agent ON agent.id = per_agent.agent_id AND agent.guid = per_agent.guid"""

SUMMARY_VIEWS: Final = (
    SqlView("top_kernels", _ranking(_KERNEL_SPANS, _total("rocpd_kernel_dispatch"))),
    SqlView("busy", _BUSY),
    SqlView(
        "top", _ranking(_ALL_SPANS, _total("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_region"))
    ),
)
