"""CSV sets of rocprofv3 (one process): one file per kind of record.

Both generations: ROCm 6.x writes segment sizes and integer agent ids, 7.x registers, streams and agent
texts. Tables of calls carry no arguments.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from rpl_core.model.trace import NOT_RECORDED, Process, Trace, TraceSource
from rpl_core.values import frozen
from rpl_rocprofv3.readers.claims import RecordedFile
from rpl_rocprofv3.readers.csv.records import (
    dispatches_of_counters,
    read_csv_agents,
    read_csv_calls,
    read_csv_copies,
    read_csv_counters,
    read_csv_dispatches,
    read_csv_ranges,
)
from rpl_rocprofv3.readers.csv.tables import csv_header
from rpl_rocprofv3.readers.gzip_limits import hollow
from rpl_rocprofv3.readers.trace import (
    TraceParts,
    assembled,
    mark_beside,
    mark_of_folder,
    origin_of,
    with_flat_geometry,
)
from rpl_rocprofv3.readers.trace.tables import Findings

# Which CSV files of rocprofv3 belong together: ``<prefix>_<kind>.csv`` with one prefix per process.

CSV_FORMAT = "rocprofv3 CSV"
#: CSV does not name the machine; files of one set share a clock.
CSV_NODE = "node"
_EDGE_BYTES = 1 << 16

KERNELS, COUNTERS, AGENTS = "kernel_trace", "counter_collection", "agent_info"
COPIES, MARKERS = "memory_copy_trace", "marker_api_trace"
_HIP = "hip_api_trace"
#: Tables of host calls, one per interface, with the same columns.
CALLS = (_HIP, "hsa_api_trace", "rccl_api_trace", "rocdecode_api_trace", "rocjpeg_api_trace")
# Written beside the kernel trace and not needed for a trace.
_UNUSED = (
    *("memory_allocation_trace", "scratch_memory_trace", "kernel_stats", "hip_api_stats", "hsa_api_stats"),
    *("memory_copy_stats", "domain_stats", "marker_api_stats"),
)
_SAME_KIND = {"hip_runtime_api_trace": _HIP}
_KINDS = (KERNELS, COUNTERS, AGENTS, *CALLS, COPIES, MARKERS, *_SAME_KIND, *_UNUSED)
_NAME = re.compile(rf"(?:(?P<prefix>.*)_)?(?P<kind>{'|'.join(_KINDS)})\.csv(?:\.gz)?")
_TIMES = ("start_timestamp", "end_timestamp")
_COLUMNS = {
    KERNELS: ("kernel_name", "dispatch_id", "agent_id", *_TIMES),
    COUNTERS: ("kernel_name", "dispatch_id", "counter_name", "counter_value"),
    AGENTS: ("node_id", "agent_type", "name"),
    **dict.fromkeys(CALLS, ("function", *_TIMES)),
    COPIES: ("direction", *_TIMES),
    MARKERS: ("function", *_TIMES),
}


@frozen(eq=False)
class CsvSet:
    """The files of one process by kind."""

    folder: Path
    prefix: str
    files: Mapping[str, Path]

    @property
    def pid(self) -> int | None:
        """The process id, which is the default prefix."""
        return int(self.prefix) if re.fullmatch(r"\d{1,9}", self.prefix) else None

    def paths(self) -> tuple[Path, ...]:
        """All files, in order of kind."""
        return tuple(path for _, path in sorted(self.files.items()))

    def call_tables(self) -> tuple[tuple[Path, bool], ...]:
        """The tables of host calls, the HIP runtime's first, and whether each is one by its header."""
        found = [self.files[kind] for kind in CALLS if kind in self.files]
        return tuple((path, _is_table_of_calls(path)) for path in found)

    def refusal(self) -> str | None:
        """Why the set gives no trace, judged by the headers."""
        for kind, path in sorted(self.files.items()):
            if kind in (*_UNUSED, *CALLS[1:]):
                continue
            if path.stat().st_size == 0:
                return f"{path.name} is empty (0 bytes)"
            if problem := hollow(path):
                return f"{path.name}: {problem}"
            present = {name.lower() for name in csv_header(path)}
            if not present:
                return f"{path.name} begins with no line of column names: it is damaged or cut off"
            missing = [column for column in _COLUMNS[kind] if column not in present]
            if missing:
                return f"{path.name} is no rocprofv3 {kind} table: it lacks {', '.join(missing)}"
        if KERNELS not in self.files and COUNTERS not in self.files:
            return "the CSV set holds no kernel trace"
        return None


def _is_table_of_calls(path: Path) -> bool:
    if path.stat().st_size == 0 or hollow(path):
        return False
    return {"function", *_TIMES} <= {name.lower() for name in csv_header(path)}


def csv_sets(files: Iterable[Path]) -> tuple[CsvSet, ...]:
    """The sets among ``files``, ordered by folder and prefix.

    Names tell; a table of dispatches under another name is a set of its own, by its header.
    """
    by_place: dict[tuple[Path, str], dict[str, Path]] = {}
    for path in sorted(files):
        if not path.is_file():
            continue
        match = _NAME.fullmatch(path.name)
        if match:
            kind = _SAME_KIND.get(match["kind"], match["kind"])
            by_place.setdefault((path.parent, match["prefix"] or ""), {}).setdefault(kind, path)
        elif renamed := _kind_by_header(path):
            by_place.setdefault((path.parent, path.name.partition(".csv")[0]), {}).setdefault(renamed, path)
    return tuple(
        CsvSet(folder, prefix, kinds)
        for (folder, prefix), kinds in sorted(by_place.items())
        if not kinds.keys() <= {MARKERS, *CALLS[1:], *_UNUSED}
    )


def _kind_by_header(path: Path) -> str | None:
    """What a table of dispatches is whose name does not say it: columns that rocprofv3 alone writes tell."""
    present = {name.lower() for name in csv_header(path)}
    if present >= {"kind", "correlation_id", *_COLUMNS[KERNELS]}:
        return KERNELS
    return COUNTERS if present >= {"correlation_id", "agent_id", *_COLUMNS[COUNTERS]} else None


def described(files: CsvSet) -> RecordedFile:
    """When the process ran, by the first and last row of its trace; CSV names no machine."""
    path = files.files.get(KERNELS) or files.files[COUNTERS]
    times = _edge_times(path)
    begin, end = (min(times), max(times)) if times else (None, None)
    return RecordedFile(
        path, CSV_NODE, None, begin, end, pids=frozenset(() if files.pid is None else (files.pid,))
    )


def _edge_times(path: Path) -> list[int]:
    """Timestamps of the first and the last row; none for compressed or unusual files. Bounded reads."""
    header = [name.lower() for name in csv_header(path)]
    if path.suffix == ".gz" or not set(_TIMES) <= set(header):
        return []
    with path.open("rb") as file:
        head = file.read(_EDGE_BYTES).decode("utf-8", "replace").splitlines()[1:2]
        file.seek(max(path.stat().st_size - _EDGE_BYTES, 0))
        tail = file.read(_EDGE_BYTES).decode("utf-8", "replace").splitlines()[-1:]
    try:
        rows = [row for row in csv.reader([*head, *tail]) if len(row) == len(header)]
        return [int(row[header.index(name)]) for row in rows for name in _TIMES]
    except (csv.Error, ValueError):
        return []


def read_csv_set(files: CsvSet, reader: str) -> Trace:
    """Read all tables of the set."""
    paths = files.files
    findings = Findings(paths.get(KERNELS) or paths[COUNTERS])
    agents = read_csv_agents(paths.get(AGENTS), CSV_NODE)
    readings = read_csv_counters(paths[COUNTERS], findings) if COUNTERS in paths else None
    if KERNELS in paths:
        dispatches = read_csv_dispatches(paths[KERNELS], agents, findings)
    else:
        assert readings is not None  # a set without both is refused
        dispatches = dispatches_of_counters(readings, agents)
    copies = read_csv_copies(paths[COPIES], agents, findings) if COPIES in paths else None
    calls = read_csv_calls(files.call_tables(), findings)
    pids = (files.pid, readings.pid if readings else None, calls.pid if calls else None)
    pid = next((pid for pid in pids if pid is not None), NOT_RECORDED)
    process = Process(f"{files.folder.name}/{files.prefix}", pid, CSV_NODE)
    marked = read_csv_ranges(paths[MARKERS], process.guid, pid, findings) if MARKERS in paths else ()
    parts = TraceParts(
        source=TraceSource(reader, CSV_FORMAT, tuple(str(path) for _, path in sorted(paths.items()))),
        processes=(process,),
        agents=tuple(agents.agents),
        kernels=dispatches.kernels,
        rows=dispatches.rows,
        stream_id=dispatches.stream_id,
        queue_id=dispatches.queue_id,
        copies=copies,
        calls=(calls.values, calls.functions) if calls else None,
        counter_names=readings.names if readings else (),
        ranges=tuple(marked),
        origin=origin_of((*mark_beside(files.folder, files.prefix), *mark_of_folder(files.folder)), findings),
    )
    trace = assembled(
        parts,
        lambda ordered: (
            readings.rows(dispatches.rows.dispatch_id, ordered.row_of, findings) if readings else None
        ),
        findings,
    )
    return trace if KERNELS in paths else with_flat_geometry(trace)
