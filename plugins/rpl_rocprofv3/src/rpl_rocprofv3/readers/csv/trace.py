"""A CSV set of rocprofv3 (one process) as a ``Trace``.

Both generations: ROCm 6.x writes segment sizes and integer agent ids, 7.x registers, streams and agent
texts. Tables of calls carry no arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.trace import NOT_RECORDED, Process, TraceSource
from rpl_rocprofv3.readers.csv.records import (
    dispatches_of_counters,
    read_csv_agents,
    read_csv_calls,
    read_csv_copies,
    read_csv_counters,
    read_csv_dispatches,
    read_csv_ranges,
)
from rpl_rocprofv3.readers.csv.sets import (
    AGENTS,
    COPIES,
    COUNTERS,
    CSV_FORMAT,
    CSV_NODE,
    KERNELS,
    MARKERS,
)
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.trace.parts import (
    TraceParts,
    assembled,
    mark_beside,
    mark_of_folder,
    origin_of,
    with_flat_geometry,
)

if TYPE_CHECKING:
    from rpl_core.model.trace import Trace
    from rpl_rocprofv3.readers.csv.sets import CsvSet

__all__ = ["read_csv_set"]


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
