"""Data views that describe the machine, processes, threads, counters and loaded code."""

from __future__ import annotations

from typing import Final

from rpl_testkit.rocpd_writer.schema.view_model import View, must, same

__all__ = ["INFO_VIEWS"]

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
