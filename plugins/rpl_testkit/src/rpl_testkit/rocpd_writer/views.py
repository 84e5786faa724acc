"""The data views of a rocpd file: machine, summaries, GPU work, records of the CPU side, counters."""

from __future__ import annotations

from typing import Final

from rpl_testkit.rocpd_writer.tables import Join, SqlView, View, left, must, same

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


# Data views of what happened: GPU work, records of the CPU side, hardware counters.

_GRAPH_SINCE = {"graph_exec_id": 2, "graph_node_id": 2}

_ALLOCATION_JOINS = (
    left("info_agent", "agent", "memory.agent_id"),
    left("info_queue", "queue", "memory.queue_id"),
    left("info_stream", "stream", "memory.stream_id"),
    *event_of("memory"),
    *process_thread("memory"),
)

WORK_VIEWS: Final = (
    View(
        "kernels",
        "rocpd_kernel_dispatch",
        "dispatch",
        (
            must("info_agent", "agent", "dispatch.agent_id"),
            *event_of("dispatch"),
            must("string", "region", "dispatch.region_name_id"),
            must("info_kernel_symbol", "symbol", "dispatch.kernel_id"),
            left("info_stream", "stream", "dispatch.stream_id"),
            # The process is found through the queue, so a dispatch without queue row is dropped.
            must("info_queue", "queue", "dispatch.queue_id"),
            must("info_process", "process", "queue.pid"),
            must("info_thread", "thread", "dispatch.tid"),
        ),
        {
            **same("dispatch", "id guid"),
            **same("thread", "tid"),
            **CATEGORY,
            "region": "region.string",
            "name": "symbol.display_name",
            **same("dispatch", "nid"),
            **same("process", "pid"),
            **agent_columns("agent"),
            **same("symbol", "code_object_id"),
            **same("dispatch", "kernel_id dispatch_id stream_id queue_id graph_exec_id graph_node_id"),
            "queue": "queue.name",
            "stream": "stream.name",
            **duration("dispatch"),
            "grid_x": "dispatch.grid_size_x",
            "grid_y": "dispatch.grid_size_y",
            "grid_z": "dispatch.grid_size_z",
            "workgroup_x": "dispatch.workgroup_size_x",
            "workgroup_y": "dispatch.workgroup_size_y",
            "workgroup_z": "dispatch.workgroup_size_z",
            "lds_size": "dispatch.group_segment_size",
            "scratch_size": "dispatch.private_segment_size",
            "vgpr_count": "symbol.arch_vgpr_count",
            **same("symbol", "accum_vgpr_count sgpr_count"),
            "static_lds_size": "symbol.group_segment_size",
            "static_scratch_size": "symbol.private_segment_size",
            **same("dispatch", "event_id"),
            **CORRELATION,
        },
        columns_since={**_GRAPH_SINCE, "event_id": 3},
    ),
    View(
        "memory_copies",
        "rocpd_memory_copy",
        "copy",
        (
            must("string", "label", "copy.name_id"),
            left("string", "region", "copy.region_name_id"),
            must("info_agent", "target", "copy.dst_agent_id"),
            must("info_agent", "source", "copy.src_agent_id"),
            left("info_queue", "queue", "copy.queue_id"),
            left("info_stream", "stream", "copy.stream_id"),
            *event_of("copy"),
            *process_thread("copy"),
        ),
        {
            **same("copy", "id guid"),
            **CATEGORY,
            **same("copy", "nid"),
            **same("process", "pid"),
            **same("thread", "tid"),
            **duration("copy"),
            "name": "label.string",
            "region_name": "region.string",
            **same("copy", "stream_id queue_id graph_exec_id graph_node_id"),
            "stream_name": "stream.name",
            "queue_name": "queue.name",
            **same("copy", "size"),
            "dst_device": "target.name",
            **agent_columns("target", "dst_agent"),
            **same("copy", "dst_address"),
            "src_device": "source.name",
            **agent_columns("source", "src_agent"),
            **same("copy", "src_address"),
            **CORRELATION,
        },
        columns_since=_GRAPH_SINCE,
    ),
    View(
        "graph_launches",
        "rocpd_graph_launch",
        "launch",
        (
            left("info_agent", "agent", "launch.agent_id"),
            left("info_queue", "queue", "launch.queue_id"),
            must("event", "event", "launch.event_id"),
            *process_thread("launch"),
        ),
        {
            **same("launch", "id guid nid"),
            **same("process", "pid"),
            **same("thread", "tid"),
            **same("launch", "agent_id"),
            **agent_columns("agent"),
            **same("launch", "queue_id"),
            "queue": "queue.name",
            "name": "'Graph Execution'",
            **duration("launch"),
            **same("launch", "graph_exec_id kernel_dispatch_count event_id"),
            **CORRELATION,
        },
        since=2,
    ),
    View(
        "hip_events",
        "rocpd_hip_event",
        "barrier",
        (
            must("string", "label", "barrier.name_id"),
            left("info_agent", "agent", "barrier.agent_id"),
            *event_of("barrier"),
            *process_thread("barrier"),
        ),
        {
            **same("barrier", "id guid"),
            **CATEGORY,
            "name": "label.string",
            **same("barrier", "nid"),
            **same("process", "pid"),
            **same("thread", "tid"),
            **agent_columns("agent"),
            **same("barrier", "hip_event_handle queue_id source_queue_id"),
            **duration("barrier"),
            **CORRELATION,
        },
        since=4,
    ),
    View(
        "memory_allocations",
        "rocpd_memory_allocate",
        "memory",
        _ALLOCATION_JOINS,
        {
            **same("memory", "id guid"),
            **CATEGORY,
            **same("memory", "nid"),
            **same("process", "pid"),
            **same("thread", "tid"),
            **duration("memory"),
            **same("memory", "type level"),
            "agent_name": "agent.name",
            **agent_columns("agent"),
            **same("memory", "address size queue_id"),
            "queue_name": "queue.name",
            **same("memory", "stream_id"),
            "stream_name": "stream.name",
            **CORRELATION,
        },
    ),
    View(
        "scratch_memory",
        "rocpd_memory_allocate",
        "memory",
        _ALLOCATION_JOINS,
        {
            **same("memory", "id guid nid"),
            **same("process", "pid"),
            "operation": 'memory."type"',
            "agent_name": "agent.name",
            **agent_columns("agent"),
            **same("memory", "queue_id"),
            **same("thread", "tid"),
            "alloc_flags": "json_extract(memory.extdata, '$.flags')",
            **duration("memory"),
            **same("memory", "size address"),
            **same("event", "correlation_id"),
            **CORRELATION,
            **CATEGORY,
            "event_extdata": "event.extdata",
        },
        tail="WHERE memory.level = 'SCRATCH' ORDER BY memory.start",
    ),
)


# Data views of CPU-side records: API regions, their arguments, marks, and both together.

_EVENT_TEXT = same("event", "extdata call_stack line_info")
_SAMPLE_JOINS = (
    must("track", "track", "sample.track_id"),
    *event_of("sample"),
    left("string", "label", "track.name_id"),
    *process_thread("track"),
)
_SAMPLE_HEAD = {
    **same("sample", "id guid"),
    **CATEGORY,
    "name": "label.string",
    **same("track", "nid"),
    **same("process", "pid"),
    **same("thread", "tid"),
}
_SAMPLE_TAIL = {**same("sample", "event_id"), **CORRELATION, **_EVENT_TEXT}

REGION_VIEWS: Final = (
    View(
        "regions",
        "rocpd_region",
        "region",
        (*event_of("region"), must("string", "label", "region.name_id"), *process_thread("region")),
        {
            **same("region", "id guid"),
            **CATEGORY,
            "name": "label.string",
            **same("region", "nid"),
            **same("process", "pid"),
            **same("thread", "tid"),
            **duration("region"),
            **same("region", "event_id"),
            **CORRELATION,
            **_EVENT_TEXT,
        },
    ),
    View(
        "region_args",
        "rocpd_region",
        "region",
        (
            must("event", "event", "region.event_id"),
            must("arg", "arg", "event.id", column="event_id"),
            must("info_process", "process", "region.pid"),
        ),
        {**same("region", "id guid nid"), **same("process", "pid"), **same("arg", "type name value")},
    ),
    View(
        "samples",
        "rocpd_sample",
        "sample",
        _SAMPLE_JOINS,
        {**_SAMPLE_HEAD, **same("sample", "timestamp"), **_SAMPLE_TAIL},
    ),
    View(
        "sample_regions",
        "rocpd_sample",
        "sample",
        _SAMPLE_JOINS,
        {
            **_SAMPLE_HEAD,
            "start": "sample.timestamp",
            "END": "sample.timestamp",
            "duration": "(sample.timestamp - sample.timestamp)",
            **_SAMPLE_TAIL,
        },
    ),
    SqlView("regions_and_samples", "SELECT * FROM regions UNION ALL SELECT * FROM sample_regions"),
    View(
        "events_args",
        "rocpd_event",
        "event",
        (must("arg", "arg", "event.id", column="event_id"), left("string", "category", "event.category_id")),
        {
            "event_id": "event.id",
            **CATEGORY,
            **same("event", "stack_id parent_stack_id correlation_id"),
            "arg_position": "arg.position",
            "arg_type": 'arg."type"',
            "arg_name": "arg.name",
            "arg_value": "arg.value",
            **same("event", "call_stack line_info"),
            **same("arg", "extdata"),
        },
    ),
    # Real files never fill extdata.$.stream_id, so this view stays empty there
    # (docs/reference/formats.md, 2.4).
    SqlView(
        "stream_args",
        """SELECT
  arg.id AS argument_id,
  arg.event_id AS event_id,
  arg.position AS arg_position,
  arg."type" AS arg_type,
  arg.value AS arg_value,
  json_extract(arg.extdata, '$.stream_id') AS stream_id,
  stream.nid AS nid,
  process.pid AS pid,
  stream.name AS stream_name,
  stream.extdata AS extdata
FROM rocpd_arg AS arg
JOIN rocpd_info_stream AS stream
  ON stream.id = json_extract(arg.extdata, '$.stream_id') AND stream.guid = arg.guid
JOIN rocpd_info_process AS process ON process.id = stream.pid AND process.guid = stream.guid
WHERE arg.name = 'stream'""",
    ),
)


# Data views of hardware counters: raw instance rows, the summed view, and streamed (SPM) samples.
#
# `counters_collection` adds all instances of a counter, which is wrong for clocks and rates; readers should
# use the instance rows (docs/reference/formats.md, trap 5).

_VALUE_JOINS = (
    must("info_pmc", "counter", "value.pmc_id"),
    *event_of("value"),
    must("kernel_dispatch", "dispatch", "value.event_id", column="event_id"),
)
_FULL_JOINS = (
    *_VALUE_JOINS,
    must("info_agent", "agent", "dispatch.agent_id"),
    must("info_kernel_symbol", "symbol", "dispatch.kernel_id"),
    left("string", "region", "dispatch.region_name_id"),
    *process_thread("dispatch"),
)


def _volume(stem: str) -> dict[str, str]:
    axes = [f"dispatch.{stem}_{axis}" for axis in "xyz"]
    return {**same("dispatch", f"{stem}_x {stem}_y {stem}_z"), stem: f"({' * '.join(axes)})"}


_DISPATCH_COLUMNS = {
    **same("value", "guid"),
    **same("dispatch", "dispatch_id kernel_id"),
    "event_id": "event.id",
    **same("event", "correlation_id stack_id parent_stack_id"),
    **same("process", "pid"),
    **same("thread", "tid"),
    **same("dispatch", "agent_id"),
    **agent_columns("agent"),
    **same("dispatch", "queue_id"),
    **_volume("grid_size"),
    "kernel_name": "symbol.display_name",
    "kernel_region": "region.string",
    **_volume("workgroup_size"),
    "lds_block_size": "dispatch.group_segment_size",
    "scratch_size": "dispatch.private_segment_size",
    "vgpr_count": "symbol.arch_vgpr_count",
    **same("symbol", "accum_vgpr_count sgpr_count"),
    "counter_name": "counter.name",
    "counter_symbol": "counter.symbol",
    **same("counter", "component description block expression value_type"),
    "counter_id": "counter.id",
}
_CONTEXT_COLUMNS = {
    **CATEGORY,
    **same("dispatch", "nid"),
    **same("event", "extdata"),
    **same("symbol", "code_object_id"),
}

_PMC_EVENTS = View(
    "pmc_events",
    "rocpd_pmc_event",
    "value",
    (
        *_VALUE_JOINS,
        left("info_kernel_symbol", "symbol", "dispatch.kernel_id"),
        must("info_process", "process", "dispatch.pid"),
    ),
    {
        **same("value", "id guid pmc_id"),
        "event_id": "event.id",
        **CATEGORY,
        "name": "symbol.display_name",
        **same("dispatch", "nid"),
        **same("process", "pid"),
        **same("dispatch", "dispatch_id"),
        **duration("dispatch"),
        "counter_name": "counter.name",
        "counter_value": "value.value",
    },
)

_SPM_COUNTERS = View(
    "spm_counters",
    "rocpd_pmc_event",
    "value",
    (must("sample", "sample", "value.sample_id"), *_FULL_JOINS),
    {
        **same("value", "id"),
        **_DISPATCH_COLUMNS,
        **same("value", "xcc shader_engine shader_array wgp instance value"),
        **same("sample", "timestamp"),
        **same("counter", "is_constant is_derived"),
        **_CONTEXT_COLUMNS,
    },
    since=3,
    columns_since={"shader_array": 5, "wgp": 5},
)


def _collection(level: int) -> View:
    # From 3.0.3 on streamed samples share the table and must not be summed with dispatch values.
    only_pmc = "WHERE value.sample_id IS NULL\n" if level >= 3 else ""
    return View(
        "counters_collection",
        "rocpd_pmc_event",
        "value",
        _FULL_JOINS,
        {
            "id": "min(value.id)",
            **_DISPATCH_COLUMNS,
            "value": "sum(value.value)",
            **same("dispatch", "start end"),
            **same("counter", "is_constant is_derived"),
            "duration": '(dispatch."end" - dispatch."start")',
            **_CONTEXT_COLUMNS,
        },
        tail=f"{only_pmc}GROUP BY value.guid, dispatch.dispatch_id, counter.name, dispatch.agent_id",
    )


def counter_views(level: int) -> tuple[View, ...]:
    """Return the counter views of patch level `level`."""
    return (_PMC_EVENTS, _collection(level), _SPM_COUNTERS)
