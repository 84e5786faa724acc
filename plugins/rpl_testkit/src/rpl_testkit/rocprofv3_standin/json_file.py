"""The JSON file of rocprofv3: one object per process under `rocprofiler-sdk-tool`.

Key names and nesting follow the SDK's serialisation (metadata, agents, counters, strings, code_objects,
kernel_symbols, callback_records, buffer_records). `metadata.rpl_origin` says that the data is synthetic.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rpl_core.model.metric import ORIGIN_MARK

if TYPE_CHECKING:
    from rpl_testkit.rocpd_writer.rows import DispatchRow, KernelRow, RocpdContents
    from rpl_testkit.rocprofv3_standin.thread_trace import PcSampleSet

#: Record kinds by number, as the string table of this file lists them.
_KINDS: Final = ("NONE", "HIP_RUNTIME_API_EXT", "KERNEL_DISPATCH", "MEMORY_COPY", "MEMORY_ALLOCATION")
_DISPATCH_OPERATIONS: Final = ("KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE")
_COMPLETE: Final = 2
_ALLOCATION_OPERATIONS: Final = ("MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE")
_COPY_OPERATIONS: Final = (
    "MEMORY_COPY_NONE",
    "MEMORY_COPY_HOST_TO_HOST",
    "MEMORY_COPY_HOST_TO_DEVICE",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "MEMORY_COPY_DEVICE_TO_DEVICE",
)
#: Record groups that this stand-in never fills but every real file has.
_EMPTY_GROUPS: Final = (
    "hsa_api",
    "marker_api",
    "rccl_api",
    "scratch_memory",
    "rocdecode_api",
    "rocjpeg_api",
    "pc_sample_host_trap",
    "pc_sample_stochastic",
)

Json = dict[str, Any]


def json_text(contents: RocpdContents, *, kernel_trace: bool, samples: PcSampleSet | None = None) -> str:
    """Return the whole file as text; without `kernel_trace` dispatches are in counter records only."""
    document = _Document(contents, kernel_trace=kernel_trace, samples=samples)
    return json.dumps({"rocprofiler-sdk-tool": [document.whole()]}, indent=1)


class _Document:
    """One process object; holds the look-ups that the records need."""

    def __init__(self, contents: RocpdContents, *, kernel_trace: bool, samples: PcSampleSet | None) -> None:
        self._contents = contents
        self._samples = samples
        self._traced = list(contents.dispatches) if kernel_trace else []
        self._pid = contents.process.pid
        self._regions = list(contents.regions)
        self._functions = sorted({region.name for region in self._regions})
        self._counter_ids = {row.name: 1_000 + i for i, row in enumerate(contents.counter_definitions)}
        self._handles = {agent.index: _handle(agent.extdata["id"]["handle"]) for agent in contents.agents}

    def whole(self) -> Json:
        contents = self._contents
        return {
            "metadata": self._metadata(),
            "agents": [dict(agent.extdata) for agent in contents.agents],
            "counters": self._counters(),
            "strings": self._strings(),
            "code_objects": self._code_objects(),
            "kernel_symbols": [_symbol(kernel) for kernel in contents.kernels],
            "host_functions": [],
            "summary": [],
            "callback_records": {"counter_collection": self._counter_records()},
            "buffer_records": self._buffer_records(),
        }

    def _metadata(self) -> Json:
        node, process = self._contents.node, self._contents.process
        return {
            "node": {
                "id": node.node_id,
                "hash": node.node_id,
                "machine_id": node.machine_id,
                "system_name": node.system_name,
                "hostname": node.hostname,
                "release": node.release,
                "version": node.version,
                "hardware_name": node.hardware_name,
                "domain_name": node.domain_name,
            },
            "pid": self._pid,
            "init_time": process.begin_ns,
            "fini_time": process.end_ns,
            "command": process.command.split(" "),
            "config": dict(process.extdata),
            ORIGIN_MARK: "synthetic",
        }

    def _counters(self) -> list[Json]:
        return [
            {
                "agent_id": self._handles[row.agent],
                "id": _handle(self._counter_ids[row.name]),
                "is_constant": int(row.is_constant),
                "is_derived": int(row.is_derived),
                "name": row.name,
                "description": row.description,
                "block": row.block,
                "expression": row.expression,
            }
            for row in self._contents.counter_definitions
        ]

    def _strings(self) -> Json:
        operations = {
            "HIP_RUNTIME_API_EXT": self._functions,
            "KERNEL_DISPATCH": list(_DISPATCH_OPERATIONS),
            "MEMORY_COPY": list(_COPY_OPERATIONS),
            "MEMORY_ALLOCATION": list(_ALLOCATION_OPERATIONS),
        }
        names = [{"kind": kind, "operations": operations.get(kind, [])} for kind in _KINDS]
        return {
            "callback_records": names,
            "buffer_records": names,
            "marker_api": [],
            "correlation_id": {"external": []},
            "counters": {"dimension_ids": []},
            "pc_sample_instructions": list(self._samples.instructions) if self._samples else [],
            "pc_sample_comments": list(self._samples.comments) if self._samples else [],
            "att_filenames": [],
            "code_object_snapshot_filenames": [],
        }

    def _code_objects(self) -> list[Json]:
        return [
            {
                "size": 88,
                "code_object_id": code.code_object_id,
                "agent_id": self._handles[code.agent],
                "uri": code.uri,
                "load_base": code.load_base,
                "load_size": code.load_bytes,
                "load_delta": code.load_base,
                **code.extdata,
            }
            for code in self._contents.code_objects
        ]

    def _info(self, row: DispatchRow) -> Json:
        return {
            "size": 72,
            "agent_id": self._handles[row.agent],
            "queue_id": _handle(row.queue_id),
            "kernel_id": row.kernel_id,
            "dispatch_id": row.dispatch_id,
            "private_segment_size": row.scratch_bytes,
            "group_segment_size": row.lds_bytes,
            "workgroup_size": dict(zip("xyz", row.workgroup, strict=True)),
            "grid_size": dict(zip("xyz", row.grid, strict=True)),
        }

    def _counter_records(self) -> list[Json]:
        dispatches = {row.dispatch_id: row for row in self._contents.dispatches}
        values: dict[tuple[int, int | None], list[Json]] = {}
        for counter in self._contents.counters:
            handle = _handle(self._counter_ids[counter.name])
            records = [{"counter_id": handle, "value": value} for value in counter.values]
            values.setdefault((counter.dispatch_id, counter.replay_pass), []).extend(records)
        return [
            self._counter_record(dispatches[number], replay, rows)
            for (number, replay), rows in values.items()
        ]

    def _counter_record(self, row: DispatchRow, replay: int | None, records: list[Json]) -> Json:
        data = {
            "size": 88,
            "correlation_id": {"internal": row.stack_id, "external": row.external_id},
            "start_timestamp": row.begin_ns,
            "end_timestamp": row.end_ns,
            "dispatch_info": self._info(row),
        }
        return {
            "thread_id": self._pid,
            "dispatch_data": data,
            "records": records,
            "stream_id": _handle(row.stream_id),
            **({} if replay is None else {"replay_pass": replay}),
        }

    def _record(self, kind: str, operation: int, stack_id: int, span: tuple[int, int]) -> Json:
        return {
            "size": 96,
            "kind": _KINDS.index(kind),
            "operation": operation,
            "thread_id": self._pid,
            "correlation_id": {"internal": stack_id, "external": 0, "ancestor": 0},
            "start_timestamp": span[0],
            "end_timestamp": span[1],
        }

    def _buffer_records(self) -> Json:
        contents = self._contents
        return {
            "kernel_dispatch": [
                {
                    **self._record("KERNEL_DISPATCH", _COMPLETE, row.stack_id, (row.begin_ns, row.end_ns)),
                    "dispatch_info": self._info(row),
                    "stream_id": _handle(row.stream_id),
                }
                for row in self._traced
            ],
            "hip_api": [
                {
                    **self._record(
                        "HIP_RUNTIME_API_EXT",
                        self._functions.index(row.name),
                        row.stack_id,
                        (row.begin_ns, row.end_ns),
                    ),
                    "args": [{"type": a.type, "name": a.name, "value": a.value} for a in row.arguments],
                    "retval": {"uint64_t_retval": 0},
                }
                for row in self._regions
            ],
            "memory_copy": [
                {
                    **self._record(
                        "MEMORY_COPY",
                        _COPY_OPERATIONS.index(row.name),
                        row.stack_id,
                        (row.begin_ns, row.end_ns),
                    ),
                    "dst_agent_id": self._handles[row.destination_agent],
                    "src_agent_id": self._handles[row.source_agent],
                    "bytes": row.size_bytes,
                    "stream_id": _handle(row.stream_id),
                }
                for row in contents.copies
            ],
            "memory_allocation": [
                {
                    **self._record("MEMORY_ALLOCATION", 1, row.stack_id, (row.begin_ns, row.end_ns)),
                    "agent_id": self._handles[row.agent or 0],
                    "address": f"0x{row.address:016x}",
                    "allocation_size": row.size_bytes,
                }
                for row in contents.allocations
            ],
            **{name: [] for name in _EMPTY_GROUPS},
            **({f"pc_sample_{self._samples.method}": self._samples.records()} if self._samples else {}),
        }


def _handle(number: int) -> Json:
    return {"handle": number}


def _symbol(kernel: KernelRow) -> Json:
    return {
        "size": 80,
        "kernel_id": kernel.kernel_id,
        "code_object_id": kernel.code_object_id,
        "kernel_name": f"{kernel.symbol}.kd",
        "kernel_object": kernel.kernel_object,
        "kernarg_segment_size": kernel.kernarg_bytes,
        "kernarg_segment_alignment": 8,
        "group_segment_size": kernel.lds_bytes,
        "private_segment_size": kernel.scratch_bytes,
        "sgpr_count": kernel.sgpr,
        "arch_vgpr_count": kernel.arch_vgpr,
        "accum_vgpr_count": kernel.accum_vgpr,
        "formatted_kernel_name": kernel.name,
        "demangled_kernel_name": kernel.name,
        "truncated_kernel_name": kernel.name.split("(")[0].split("<")[0].split(" ")[-1],
    }
