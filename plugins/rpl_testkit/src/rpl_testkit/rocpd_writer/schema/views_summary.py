"""Summary views. Their durations are microseconds, unlike everywhere else (docs/reference/formats.md, trap
1).

`average` divides integers before it converts to microseconds, so it loses the fraction of a nanosecond.
"""

from __future__ import annotations

from typing import Final

from rpl_testkit.rocpd_writer.schema.view_model import SqlView

# S608 below: the texts are put together from constants of this module, never from input.

__all__ = ["SUMMARY_VIEWS"]

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
