"""Data views of hardware counters: raw instance rows, the summed view, and streamed (SPM) samples.

`counters_collection` adds all instances of a counter, which is wrong for clocks and rates; readers should
use the instance rows (docs/reference/formats.md, trap 5).
"""

from __future__ import annotations

from rpl_testkit.rocpd_writer.schema.view_model import View, left, must, same
from rpl_testkit.rocpd_writer.schema.view_parts import (
    CATEGORY,
    agent_columns,
    duration,
    event_of,
    process_thread,
)

__all__ = ["counter_views"]

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
