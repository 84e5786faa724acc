"""The result files of one process: their names, announcements, planned damage."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from rpl_core.model.metric import ORIGIN_MARK
from rpl_core.values import frozen
from rpl_testkit.rocpd_writer import write_rocpd
from rpl_testkit.rocpd_writer.rows import AgentRow, CounterRow, DispatchRow, KernelRow, RocpdContents
from rpl_testkit.synthetic_recording.mi300x import CAPABILITY_WORD

if TYPE_CHECKING:
    from rpl_testkit.rocprofv3_standin.command_line import EmulatedRocm, Log
    from rpl_testkit.rocprofv3_standin.passes import Pass
    from rpl_testkit.rocprofv3_standin.thread_trace import PcSampleSet

DEFAULT_NAME: Final = "%hostname%/%pid%"
_SHORT: Final = {"%h": "hostname", "%p": "pid", "%j": "job", "%r": "rank", "%s": "size"}
_ENVIRONMENT: Final = re.compile(r"%env\{([^}]*)\}%|\$ENV\{([^}]*)\}|%q\{([^}]*)\}")


@frozen
class NameKeys:
    """What the keys stand for in one process."""

    values: Mapping[str, str]
    environment: Mapping[str, str]

    @classmethod
    def of_process(
        cls,
        pid: int,
        ids: tuple[int, int, int],
        application: Sequence[str],
        environment: Mapping[str, str],
        launched: str = "",
    ) -> NameKeys:
        """Collect keys for process `pid`; `ids` are parent, group and session, `launched` is `DATE TIME`."""
        parent, group, session = ids
        words = [word.strip().replace("/", "_").lstrip("._") for word in application]
        launch_date, _, launch_time = launched.partition(" ")
        rank = environment.get("OMPI_COMM_WORLD_RANK", "0")
        values = {
            "hostname": os.uname().nodename,
            "pid": str(pid),
            "ppid": str(parent),
            "pgid": str(group),
            "psid": str(session),
            "psize": "1",
            "job": environment.get("SLURM_JOB_ID", "0"),
            "rank": environment.get("SLURM_PROCID", rank),
            "size": environment.get("OMPI_COMM_WORLD_SIZE", "1"),
            "nid": environment.get("SLURM_PROCID", environment.get("OMPI_COMM_WORLD_RANK", str(pid))),
            "cwd": str(Path.cwd()),
            "launch_date": launch_date,
            "launch_time": launch_time,
            "argv": "_".join(words),
            "args": "_".join(words[1:]),
            "tag": Path(application[0]).name if application else "",
            **{f"arg{i}": word for i, word in enumerate(words)},
        }
        return cls(values, environment)


def expand_name(pattern: str, keys: NameKeys) -> str:
    """Replace all keys in `pattern`; an environment variable that is not set becomes nothing."""
    text = _ENVIRONMENT.sub(
        lambda match: keys.environment.get(next(filter(None, match.groups()), ""), ""), pattern
    )
    for key, value in keys.values.items():
        text = text.replace(f"%{key}%", value).replace(f"{{{key}}}", value)
    for short, key in _SHORT.items():
        text = text.replace(short, keys.values[key])
    return text


def output_file(directory: str | None, name: str | None, ending: str, keys: NameKeys) -> Path:
    """Return DIR/NAME_ending with all keys replaced; neither has to exist."""
    folder = expand_name(directory or str(Path.cwd()), keys)
    return Path(folder) / f"{expand_name(name or DEFAULT_NAME, keys)}_{ending}"


# Write the result files of one process: names, announcements, planned damage.
#
# An existing file of the same name is replaced, whoever wrote it (docs/reference/formats.md, 4.3).

_ORIGIN_NOTE: Final = {ORIGIN_MARK: "synthetic", "written_by": "rpl stand-in for rocprofv3"}


class DiskFullError(Exception):
    """The planned failure of a full disk happened; the real tool aborts here."""


class NotEmulatedError(Exception):
    """A format that only the real profiler can write was asked for."""


def write_outputs(
    contents: RocpdContents,
    one: Pass,
    keys: NameKeys,
    release: EmulatedRocm,
    log: Log,
    damage: Mapping[str, str],
    samples: PcSampleSet | None = None,
) -> None:
    """Write every requested format. OSError when a place can't be written."""
    for binary in ("pftrace", "otf2"):
        if binary in one.formats:
            raise NotEmulatedError(f"rpl's stand-in can't write {binary}; ask for rocpd, csv or json")
    if "empty" in damage:
        contents = attrs.evolve(contents, dispatches=(), copies=(), regions=(), counters=())
    writer = _Files(one, keys, log, damage)
    kernel_trace = "kernel_trace" in one.traces
    # Each format's writer is imported on demand: most of a run's time is the start of the program.
    if "csv" in one.formats:
        for ending, text in csv_files(contents, wide=release.wide_csv, kernel_trace=kernel_trace):
            writer.text(ending, text)
        if samples is not None and samples.samples:
            writer.text(f"pc_sampling_{samples.method}.csv", csv_text(list(samples.csv_rows())))
        writer.text(f"{ORIGIN_MARK}.json", json.dumps(_ORIGIN_NOTE) + "\n", announced=False)
    if "json" in one.formats:
        from rpl_testkit.rocprofv3_standin.json_file import json_text

        writer.text("results.json", json_text(contents, kernel_trace=kernel_trace, samples=samples))
    if "rocpd" in one.formats and release.schema_version:
        writer.database(contents, release.schema_version)


@frozen
class _Files:
    one: Pass
    keys: NameKeys
    log: Log
    damage: Mapping[str, str]

    def _prepare(self, ending: str) -> Path:
        path = output_file(self.one.directory, self.one.name, ending, self.keys)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def text(self, ending: str, text: str, *, announced: bool = True) -> None:
        path = self._prepare(ending)
        if announced:
            self.log.opened(path)
        cut = len(text) // 2 if {"truncated", "disk_full"} & self.damage.keys() and announced else len(text)
        path.write_text(text[:cut], encoding="utf-8")

    def database(self, contents: RocpdContents, schema_version: str) -> None:
        self.log.writing_database(contents.process.pid, contents.node.node_id)
        path = self._prepare("results.db")
        self.log.opened(path, contents.guid)
        if "disk_full" in self.damage:
            path.write_bytes(b"SQLite format 3\0")
            self.log.sqlite_failure(13, "database or disk is full")
            raise DiskFullError
        write_rocpd(path, contents, synthetic=True, schema_version=schema_version)
        if "truncated" in self.damage:
            os.truncate(path, path.stat().st_size // 2)


# The CSV files of rocprofv3, both column generations.
#
# Columns of 6.x and 7.x kernel traces, agent tables and counter tables are those of real files. That 6.x
# counter tables lack Accum_VGPR_Count and 6.x copies lack Stream_Id is inferred from the kernel trace.

_AXES: Final = ("x", "y", "z")
_LDS_GRANULE: Final = 512
_REGISTERS: Final = ("LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count", "SGPR_Count")
_SHAPE: Final = tuple(f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ")
_TIMES: Final = ("Start_Timestamp", "End_Timestamp")

Row = dict[str, Any]


def csv_files(contents: RocpdContents, *, wide: bool, kernel_trace: bool) -> Iterator[tuple[str, str]]:
    """Yield (name ending, text) of every file that has rows; `wide` is the 7.x generation."""
    tables = {
        "agent_info": _agent_rows(contents),
        "kernel_trace": _kernel_rows(contents, wide=wide) if kernel_trace else [],
        "hip_api_trace": _hip_rows(contents, wide=wide),
        "memory_copy_trace": _copy_rows(contents, wide=wide),
        "memory_allocation_trace": _allocation_rows(contents, wide=wide),
        "counter_collection": _counter_rows(contents, wide=wide),
    }
    for name, rows in tables.items():
        listed = list(rows)
        if listed:
            yield f"{name}.csv", csv_text(listed)


def csv_text(rows: list[Row]) -> str:
    """A table with the keys of its first row as header; there must be one."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _agent_label(index: int, *, wide: bool) -> str | int:
    return f"Agent {index}" if wide else index


def _agent_rows(contents: RocpdContents) -> Iterator[Row]:
    for agent in contents.agents:
        yield dict(_agent_cells(agent))


def _agent_cells(agent: AgentRow) -> Iterator[tuple[str, Any]]:
    data = agent.extdata
    yield "Node_Id", data["node_id"]
    yield "Logical_Node_Id", data["logical_node_id"]
    yield "Agent_Type", agent.kind
    keys = list(data)
    counts = ("mem_banks_count", "caches_count", "io_links_count")
    for key in keys[keys.index("cpu_cores_count") : keys.index("workgroup_max_dim")]:
        if key not in counts:
            yield key.title(), _agent_word(key, data[key])
    for key in ("workgroup_max_dim", "grid_max_dim"):
        for axis in _AXES:
            yield f"{key}_{axis}".title(), data[key][axis]
    for key in ("name", "vendor_name", "product_name", "model_name"):
        yield key.title(), data[key]


def _agent_word(key: str, value: Any) -> Any:
    """Bit fields appear as one number in CSV."""
    if not isinstance(value, dict):
        return value
    if key == "capability":
        return CAPABILITY_WORD if any(value.values()) else 0
    return value["uCodeSDMA" if key == "sdma_fw_version" else "uCode"]


def _registers(row: DispatchRow, kernel: KernelRow) -> Row:
    # The profiler rounds the static LDS of the symbol; dynamic LDS is not in these files.
    lds = math.ceil(kernel.lds_bytes / _LDS_GRANULE) * _LDS_GRANULE
    return dict(
        zip(
            _REGISTERS,
            (lds, row.scratch_bytes, kernel.arch_vgpr, kernel.accum_vgpr, kernel.sgpr),
            strict=True,
        )
    )


def _kernel_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    kernels = {kernel.kernel_id: kernel for kernel in contents.kernels}
    for row in contents.dispatches:
        kernel = kernels[row.kernel_id]
        sizes: Row = (
            _registers(row, kernel)
            if wide
            else {"Private_Segment_Size": row.scratch_bytes, "Group_Segment_Size": row.lds_bytes}
        )
        yield {
            "Kind": "KERNEL_DISPATCH",
            "Agent_Id": _agent_label(row.agent, wide=wide),
            "Queue_Id": row.queue_id,
            **({"Stream_Id": row.stream_id} if wide else {}),
            "Thread_Id": contents.process.pid,
            "Dispatch_Id": row.dispatch_id,
            "Kernel_Id": row.kernel_id,
            "Kernel_Name": kernel.name,
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
            **sizes,
            **dict(zip(_SHAPE, (*row.workgroup, *row.grid), strict=True)),
        }


def _hip_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    pid = contents.process.pid
    for row in contents.regions:
        yield {
            "Domain": row.category if wide else row.category.removesuffix("_EXT"),
            "Function": row.name,
            "Process_Id": pid,
            "Thread_Id": pid,
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
        }


def _copy_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    for row in contents.copies:
        yield {
            "Kind": "MEMORY_COPY",
            "Direction": row.name,
            **({"Stream_Id": row.stream_id} if wide else {}),
            "Source_Agent_Id": _agent_label(row.source_agent, wide=wide),
            "Destination_Agent_Id": _agent_label(row.destination_agent, wide=wide),
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
        }


def _allocation_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    for row in contents.allocations:
        yield {
            "Kind": "MEMORY_ALLOCATION",
            "Operation": "MEMORY_ALLOCATION_ALLOCATE",
            "Agent_Id": _agent_label(row.agent or 0, wide=wide),
            "Allocation_Size": row.size_bytes,
            "Address": hex(row.address),
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
        }


def _counter_rows(contents: RocpdContents, *, wide: bool) -> Iterable[Row]:
    """One row per (dispatch, counter): the sum over instances."""
    kernels = {kernel.kernel_id: kernel for kernel in contents.kernels}
    dispatches = {row.dispatch_id: row for row in contents.dispatches}
    pid = contents.process.pid
    for counter in contents.counters:
        row = dispatches[counter.dispatch_id]
        kernel = kernels[row.kernel_id]
        registers = _registers(row, kernel)
        if not wide:
            del registers["Accum_VGPR_Count"]
        yield {
            "Correlation_Id": row.stack_id,
            "Dispatch_Id": row.dispatch_id,
            "Agent_Id": _agent_label(row.agent, wide=wide),
            "Queue_Id": row.queue_id,
            "Process_Id": pid,
            "Thread_Id": pid,
            "Grid_Size": math.prod(row.grid),
            "Kernel_Id": row.kernel_id,
            "Kernel_Name": kernel.name,
            "Workgroup_Size": math.prod(row.workgroup),
            **registers,
            "Counter_Name": counter.name,
            "Counter_Value": math.fsum(counter.values),
            **dict(zip(_TIMES, (row.begin_ns, row.end_ns), strict=True)),
        }


# Several groups of counters in one run: kernel replay, and groups that take turns.
#
# Kernel replay gives a record of every group for a launch, all under its dispatch id; a launch that can't be
# replayed has the first group only. With rotation a launch has the group whose turn it is.


def in_groups(contents: RocpdContents, one: Pass, failures: Mapping[str, str], log: Log) -> RocpdContents:
    """`contents` with the counters that each launch really has."""
    if len(one.groups) < 2:
        return contents
    rows: dict[tuple[int, str], CounterRow] = {(row.dispatch_id, row.name): row for row in contents.counters}
    counted = [d for d in contents.dispatches if any((d.dispatch_id, n) in rows for n in one.counters)]
    kept: list[CounterRow] = []
    graphs = 0
    for number, launch in enumerate(counted):
        if not one.replay:
            turn = number // one.group_interval % len(one.groups)
            kept += _of_group(rows, launch, one.groups[turn])
            continue
        declined = failures.get("replay_declined") if launch.kernel_id == 1 else None
        if declined:
            log.replay_declined(launch.dispatch_id, declined, len(one.groups))
        if launch.graph_exec_id:
            graphs += 1
            if graphs == 1:
                log.graph_not_replayed()
        passes = one.groups[:1] if declined or launch.graph_exec_id else one.groups
        for index, group in enumerate(passes):
            kept += [attrs.evolve(row, replay_pass=index) for row in _of_group(rows, launch, group)]
    return attrs.evolve(contents, counters=kept)


def _of_group(
    rows: Mapping[tuple[int, str], CounterRow], launch: DispatchRow, group: Sequence[str]
) -> list[CounterRow]:
    keys = ((launch.dispatch_id, name.partition(":")[0]) for name in group)
    return [rows[key] for key in keys if key in rows]
