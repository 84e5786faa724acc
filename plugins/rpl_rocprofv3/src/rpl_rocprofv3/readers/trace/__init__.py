"""From the rows of a file to a ``Trace``: the same for every format of one process set.

Here are the last steps: streams and queues get numbers, rows their order, dispatches their counters; what
needs more than one column is checked, and marks of writers that are no profilers are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.metric import ORIGIN_MARK, Origin
from rpl_core.model.trace import (
    NOT_RECORDED,
    RANGES,
    Agent,
    ApiCalls,
    HostRange,
    Kernel,
    Process,
    Queue,
    Stream,
    Trace,
    TraceRole,
    TraceSource,
    distinct_values,
)
from rpl_core.values import frozen
from rpl_rocprofv3.hip_api import HIP_API, hip_meanings
from rpl_rocprofv3.readers.columns import distinct_ids, is_constant, positions
from rpl_rocprofv3.readers.trace.tables import (
    CopyRows,
    CounterRows,
    DispatchRows,
    Findings,
    OrderedDispatches,
    checked_counters,
    ordered_copies,
    ordered_dispatches,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.readers.columns import IntegerColumn

    CounterSource = Callable[[OrderedDispatches], CounterRows | None]

# Agents (GPUs, CPUs) from the driver facts that each format carries under its own spelling.
#
# rocpd and JSON hold them as ``snake_case`` keys, CSV as ``Title_Case`` columns; both name the same fields
# (docs/reference/formats.md, 2.6).

_KINDS = {"1": "CPU", "2": "GPU", "CPU": "CPU", "GPU": "GPU", "NIC": "NIC"}
_LOCAL_HEAPS = (1, 2)  # HSA heap types: frame buffer public and private
_BYTES_PER_KB = 1024
_NUMBER_LIMIT = 1 << 53  # sums and products of such numbers are numbers still
# Longest agent description that is parsed; real ones have about 150 kB (caches of 304 CUs).
_LARGEST_FACTS = 8 << 20


def whole_number(value: object) -> int | None:
    """``value`` as a non-negative integer, None where it says nothing."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value if 0 <= value < _NUMBER_LIMIT else None
    try:
        number = float(str(value))
    except ValueError:
        return None
    return int(number) if 0 <= number < _NUMBER_LIMIT and number.is_integer() else None


def _fact(value: object) -> int | None:
    """A driver fact: zero means that the driver did not fill it in."""
    return whole_number(value) or None


def _filled_text(value: object) -> str | None:
    text = str(value).strip() if value is not None else ""
    return text or None


def parsed_facts(text: object) -> Mapping[str, Any]:
    """The JSON object in ``text``; empty when it is none."""
    if not isinstance(text, str) or len(text) > _LARGEST_FACTS:
        return {}
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def architecture_of_version(version: int | None) -> str | None:
    """``gfx942`` for 90402: decimal major, minor, stepping, the last two written in hex.

    See docs/reference/formats.md, 2.6.
    """
    if not version:
        return None
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _local_memory_bytes(facts: Mapping[str, Any]) -> int | None:
    # local_mem_size is 0 on current drivers; the memory banks hold the truth
    # (docs/reference/formats.md, 2.6).
    banks = facts.get("mem_banks")
    sizes = [
        whole_number(bank.get("size_in_bytes")) or 0
        for bank in (banks if isinstance(banks, list) else [])
        if isinstance(bank, dict) and bank.get("heap_type") in _LOCAL_HEAPS
    ]
    return sum(sizes) or _fact(facts.get("local_mem_size"))


def agent_from_facts(node: str, index: int, kind: object, facts: Mapping[str, Any], name: object) -> Agent:
    """Build an agent from ``snake_case`` driver facts. ``name`` is "gfx942" on a GPU."""
    label = _filled_text(name) or _filled_text(facts.get("name"))
    agent_kind = _KINDS.get(str(kind).upper(), "GPU" if (label or "").startswith("gfx") else "CPU")
    if agent_kind != "GPU":
        return Agent(node, index, agent_kind, product=_filled_text(facts.get("product_name")) or label)
    lds_kb = _fact(facts.get("lds_size_in_kb"))
    version = _fact(facts.get("gfx_target_version"))
    return Agent(
        node=node,
        index=index,
        kind=agent_kind,
        architecture=label if label and label.startswith("gfx") else architecture_of_version(version),
        product=_filled_text(facts.get("product_name")),
        chip_id=_fact(facts.get("device_id")),
        compute_units=_fact(facts.get("cu_count")),
        xcd_count=_fact(facts.get("num_xcc")),
        simd_per_cu=_fact(facts.get("simd_per_cu")),
        max_waves_per_simd=_fact(facts.get("max_waves_per_simd")),
        wave_size=_fact(facts.get("wave_front_size")),
        lds_bytes_per_cu=lds_kb * _BYTES_PER_KB if lds_kb else None,
        clock_mhz=_fact(facts.get("max_engine_clk_fcompute")),
        local_memory_bytes=_local_memory_bytes(facts),
    )


Handle = TypeVar("Handle", Stream, Queue)


@frozen(eq=False)
class TraceParts:
    """What a reader found. Stream and queue ids are the recorded ones, -1 where there is none."""

    source: TraceSource
    processes: tuple[Process, ...]
    agents: tuple[Agent, ...]
    kernels: tuple[Kernel, ...]
    rows: DispatchRows
    stream_id: IntegerColumn
    queue_id: IntegerColumn
    copies: tuple[CopyRows, IntegerColumn] | None = None  # with the stream id of each
    calls: tuple[ApiCalls, tuple[str, ...]] | None = None  # with the function names
    counter_names: tuple[str, ...] = ()
    stream_names: Mapping[int, str | None] = attrs.field(factory=dict)
    queue_names: Mapping[int, str | None] = attrs.field(factory=dict)
    grouped_by_queue: bool = False
    origin: Origin = Origin.MEASURED
    ranges: tuple[HostRange, ...] = ()


def assembled(parts: TraceParts, counters: CounterSource, findings: Findings) -> Trace:
    """The trace, with everything that ``findings`` collected."""
    numbered = _Numbered(parts)
    ordered = ordered_dispatches(numbered.rows, findings)
    readings = counters(ordered)
    values = None if readings is None else checked_counters(readings, parts.counter_names, findings)
    trace = Trace(
        source=parts.source,
        role=TraceRole.TIMING if values is None else TraceRole.COUNTERS,
        origin=parts.origin,
        processes=parts.processes,
        agents=parts.agents,
        kernels=parts.kernels,
        dispatches=ordered.dispatches,
        shapes=ordered.shapes,
        streams=numbered.streams,
        queues=numbered.queues,
        copies=ordered_copies(numbered.copies, findings) if numbered.copies else None,
        copy_directions=numbered.copies.directions if numbered.copies else (),
        host_api=HIP_API,
        api_calls=parts.calls[0] if parts.calls else None,
        api_functions=parts.calls[1] if parts.calls else (),
        api_meanings=hip_meanings(parts.calls[1]) if parts.calls else (),
        counters=values,
        counter_names=parts.counter_names if values is not None else (),
        grouped_by_queue=parts.grouped_by_queue,
        extras={RANGES: parts.ranges} if parts.ranges else {},
    )
    check_clock(trace, findings)
    check_waves(trace, findings)
    return attrs.evolve(trace, diagnostics=findings.diagnostics())


class _Numbered:
    """Rows whose stream and queue ids became indices."""

    def __init__(self, parts: TraceParts) -> None:
        processes, ids = [parts.rows.process], [parts.stream_id]
        if parts.copies is not None:
            processes.append(parts.copies[0].process)
            ids.append(parts.copies[1])
        self.streams, streams = _number_handles(Stream, processes, ids, parts.stream_names)
        self.queues, queues = _number_handles(Queue, processes[:1], [parts.queue_id], parts.queue_names)
        self.rows = attrs.evolve(parts.rows, stream=streams[0], queue=queues[0])
        self.copies = attrs.evolve(parts.copies[0], stream=streams[1]) if parts.copies else None


def _number_handles(
    make: Callable[[int, int, str | None], Handle],
    process_columns: Sequence[Int32Column],
    id_columns: Sequence[IntegerColumn],
    names: Mapping[int, str | None],
) -> tuple[tuple[Handle, ...], list[Int32Column]]:
    """The handles in order of (process, id), and one index column per pair of input columns.

    An id of -1 is not recorded and stays -1.
    """
    processes = distinct_values(np.concatenate([distinct_ids(column) for column in process_columns])).tolist()
    if len(processes) == 1:
        # All rows belong to it: nothing has to be picked.
        used, indices = _as_indices(id_columns)
        return tuple(make(processes[0], handle, names.get(handle)) for handle in used), indices
    indices = [np.full(len(ids), NOT_RECORDED, np.int32) for ids in id_columns]
    handles: list[Handle] = []
    for number in processes:
        rows = [column == number for column in process_columns]
        used, places = _as_indices(
            [ids[rows_of_column] for ids, rows_of_column in zip(id_columns, rows, strict=True)]
        )
        for index, rows_of_column, place in zip(indices, rows, places, strict=True):
            index[rows_of_column] = np.where(place < 0, NOT_RECORDED, place + len(handles))
        handles.extend(make(number, handle, names.get(handle)) for handle in used)
    return tuple(handles), indices


def _as_indices(columns: Sequence[IntegerColumn]) -> tuple[list[int], list[Int32Column]]:
    """The ids that occur in any column, ascending without -1, and the columns as indices into them."""
    distinct = distinct_values(np.concatenate([distinct_ids(column) for column in columns]))
    used = distinct[distinct != NOT_RECORDED]
    return used.tolist(), [positions(column, used) for column in columns]


# Checks on a finished trace that need several of its parts: clocks, launched waves.

_WAVES = "SQ_WAVES"


def check_clock(trace: Trace, findings: Findings) -> None:
    """Dispatches before their process began: the GPU clock was not converted to the host's."""
    begin = np.array([p.begin_ns or 0 for p in trace.processes], np.int64)
    if not len(begin):
        return
    rows = trace.dispatches
    early = _recorded(rows.process) & (rows.begin_ns < _by_process(begin, rows.process))
    findings.add(
        "clock.before_process_start",
        int(early.sum()),
        "dispatch begins before its process started",
        "dispatches begin before their process started",
        cause="the GPU clock was not converted to the clock of the host",
        remedy="durations hold, but do not compare these times with API calls",
    )
    end = np.array([p.end_ns or np.iinfo(np.int64).max for p in trace.processes], np.int64)
    late = _recorded(rows.process) & (rows.begin_ns > _by_process(end, rows.process))
    findings.add(
        "clock.after_process_end",
        int(late.sum()),
        "dispatch begins after its process ended",
        "dispatches begin after their process ended",
        cause="the clock jumped, or the GPU clock was not converted to the clock of the host",
        remedy="durations hold; gaps and the order across the jump do not",
    )
    check_launch_times(trace, findings)


def _recorded(process: Int32Column) -> NDArray[np.bool_] | np.bool_:
    return process[0] >= 0 if is_constant(process) else process >= 0


def _by_process(values: Int64Column, process: Int32Column) -> Int64Column | np.int64:
    """``values[process]``; one number where there is one process only."""
    return values[process[0]] if is_constant(process) else values[process]


def check_launch_times(trace: Trace, findings: Findings) -> None:
    """Dispatches before the API call that launched them began (docs/reference/formats.md, 2.7)."""
    calls, rows = trace.api_calls, trace.dispatches
    if calls is None or not len(calls):
        return
    early = 0
    for process in range(len(trace.processes)):
        # The usual trace of one process is compared as it is, without copies of its columns.
        alone = len(trace.processes) == 1
        call = slice(None) if alone else np.flatnonzero(calls.process == process)
        row = slice(None) if alone else np.flatnonzero(rows.process == process)
        correlation = rows.correlation_id[row]
        launch = positions(correlation, calls.correlation_id[call])
        launch = np.where(correlation < 0, NOT_RECORDED, launch)
        begin = np.append(calls.begin_ns[call], np.iinfo(np.int64).min)
        early += int((rows.begin_ns[row] < begin[launch]).sum())
    findings.add(
        "clock.before_launch",
        early,
        "dispatch begins before the API call that launched it",
        "dispatches begin before the API call that launched them",
        cause="the GPU clock was not converted to the clock of the host",
        remedy="durations hold; the order against API calls does not",
    )


def check_waves(trace: Trace, findings: Findings) -> None:
    """SQ_WAVES must be the number of waves launched: workgroups times ceil(workgroup size / wave size).

    A multiple of it means that passes were added up (docs/reference/formats.md, section 2, join of passes).
    """
    values = trace.counters
    if values is None or _WAVES not in trace.counter_names:
        return
    chosen = values.counter == trace.counter_names.index(_WAVES)
    counted = np.bincount(values.dispatch[chosen], values.value[chosen], len(trace.dispatches))
    has_value = np.bincount(values.dispatch[chosen], minlength=len(trace.dispatches)) > 0
    wave_sizes = np.array([agent.wave_size or 0 for agent in trace.agents] + [0], np.int64)
    wave = wave_sizes[trace.dispatches.agent]
    shape = trace.dispatches.shape
    threads = np.prod(trace.shapes.workgroup, axis=1)[shape]
    known = has_value & (wave > 0) & (threads > 0)
    expected = trace.shapes.workgroups()[shape] * -(-threads // np.maximum(wave, 1))
    multiple = known & (counted >= 2 * expected) & (expected > 0) & (counted % np.maximum(expected, 1) == 0)
    findings.add(
        "counter.waves_multiplied",
        int(multiple.sum()),
        "dispatch counts SQ_WAVES as a multiple of the waves that were launched",
        "dispatches count SQ_WAVES as a multiple of the waves that were launched",
        cause="the profiler added up several replays of a kernel",
        remedy="collect one counter pass per run",
    )


def with_flat_geometry(trace: Trace) -> Trace:
    """``trace`` with the note that its source records total sizes only."""
    note = Diagnostic(
        code="dispatch.flattened_geometry",
        fact="grids and workgroups are recorded as total sizes and appear as one-dimensional",
        severity=Severity.INFO,
        where=trace.source.paths[0].rpartition("/")[2],
        count=len(trace.dispatches),
    )
    return attrs.evolve(trace, diagnostics=(*trace.diagnostics, note))


# Marks that a writer which is not a profiler leaves in what it writes: ``rpl_origin``.
#
# rocpd files hold it as a metadata tag, JSON files in ``metadata``, CSV sets in ``<prefix>_rpl_origin.json``.
# One in ``rpl_origin.json`` is for all rocpd files and CSV sets of the folder.

_MAX_SIDECAR_BYTES = 4096


def origin_of(marks: Sequence[str], findings: Findings) -> Origin:
    """Measured, unless a mark says otherwise. An unknown mark is not trusted."""
    if not marks:
        return Origin.MEASURED
    known = {origin.value: origin for origin in Origin}
    unknown = [mark for mark in marks if mark not in known]
    findings.add(
        "origin.unknown_mark",
        len(unknown),
        f"mark of origin is unknown ({', '.join(unknown)}); the recording counts as synthetic",
        f"marks of origin are unknown ({', '.join(unknown)}); the recording counts as synthetic",
    )
    return Origin.weakest([known.get(mark, Origin.SYNTHETIC) for mark in marks])


def mark_of_folder(folder: Path) -> tuple[str, ...]:
    """The mark of everything in the folder."""
    return mark_beside(folder, "")


def mark_beside(folder: Path, prefix: str) -> tuple[str, ...]:
    """The mark in the file beside a CSV set; one that can't be read is a mark nobody knows."""
    path = folder / f"{prefix}_{ORIGIN_MARK}.json" if prefix else folder / f"{ORIGIN_MARK}.json"
    if not path.is_file():
        return ()
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_SIDECAR_BYTES))
        return (str(content.get(ORIGIN_MARK, "absent")) if isinstance(content, dict) else "unreadable",)
    except (OSError, ValueError, RecursionError):
        return ("unreadable",)
