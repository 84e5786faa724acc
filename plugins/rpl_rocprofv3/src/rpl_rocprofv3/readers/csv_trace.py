"""A CSV set of rocprofv3 (one process) as a ``Trace``.

Both generations: ROCm 6.x writes segment sizes and integer agent ids, 7.x registers, streams and agent
texts. HIP API tables carry no arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.origin import Origin
from rpl_core.model.trace import NOT_RECORDED, Process, Queue, Stream, Trace, TraceRole, TraceSource
from rpl_rocprofv3.readers.copy_table import ordered_copies
from rpl_rocprofv3.readers.counter_table import checked_counters
from rpl_rocprofv3.readers.csv_agents import read_csv_agents
from rpl_rocprofv3.readers.csv_calls import read_csv_calls
from rpl_rocprofv3.readers.csv_copies import read_csv_copies
from rpl_rocprofv3.readers.csv_counters import read_csv_counters
from rpl_rocprofv3.readers.csv_dispatches import dispatches_of_counters, read_csv_dispatches
from rpl_rocprofv3.readers.csv_sets import AGENTS, COPIES, COUNTERS, HIP, KERNELS
from rpl_rocprofv3.readers.dispatch_table import ordered_dispatches
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.handles import number_handles
from rpl_rocprofv3.readers.register_counts import believable_registers
from rpl_rocprofv3.readers.trace_checks import check_clock, check_waves, with_flat_geometry

if TYPE_CHECKING:
    from rpl_rocprofv3.readers.csv_sets import CsvSet

__all__ = ["read_csv_set"]

_FORMAT = "rocprofv3 CSV"
#: CSV does not name the machine; files of one set share a clock.
_NODE = "node"


def read_csv_set(files: CsvSet, reader: str) -> Trace:
    """Read all tables of the set."""
    paths = tuple(path for _, path in sorted(files.files.items()))
    findings = Findings(files.files.get(KERNELS) or paths[0])
    agents = read_csv_agents(files.files.get(AGENTS), _NODE)
    readings = read_csv_counters(files.files[COUNTERS], findings) if COUNTERS in files.files else None
    if KERNELS in files.files:
        found = read_csv_dispatches(files.files[KERNELS], agents, findings)
    else:
        assert readings is not None  # a set without both is refused
        found = dispatches_of_counters(readings, agents)
    copies = read_csv_copies(files.files[COPIES], agents, findings) if COPIES in files.files else None
    calls = read_csv_calls(files.files[HIP], findings) if HIP in files.files else None
    zero = [np.zeros_like(found.rows.process), *([np.zeros_like(copies.rows.process)] if copies else [])]
    ids = [found.stream_id, *([copies.stream_id] if copies else [])]
    streams, stream_columns = number_handles(Stream, zero, ids, {})
    queues, (queue,) = number_handles(Queue, zero[:1], [found.queue_id], {})
    rows = attrs.evolve(found.rows, stream=stream_columns[0], queue=queue)
    ordered = ordered_dispatches(rows, findings)
    values = None
    if readings is not None:
        values = checked_counters(
            readings.rows(found.rows.dispatch_id, ordered.row_of, findings), readings.names, findings
        )
    pid = files.pid or (readings.pid if readings else None) or (calls.pid if calls else None)
    trace = Trace(
        source=TraceSource(reader, _FORMAT, tuple(str(path) for path in paths)),
        role=TraceRole.TIMING if values is None else TraceRole.COUNTERS,
        origin=Origin.MEASURED,
        processes=(
            Process(f"{files.folder.name}/{files.prefix}", NOT_RECORDED if pid is None else pid, _NODE),
        ),
        agents=tuple(agents.agents),
        kernels=believable_registers(found.kernels, agents.agents, findings),
        dispatches=ordered.dispatches,
        shapes=ordered.shapes,
        streams=streams,
        queues=queues,
        copies=ordered_copies(attrs.evolve(copies.rows, stream=stream_columns[1]), findings)
        if copies
        else None,
        copy_directions=copies.rows.directions if copies else (),
        api_calls=calls.values if calls else None,
        api_functions=calls.functions if calls else (),
        counters=values,
        counter_names=readings.names if readings else (),
    )
    check_clock(trace, findings)
    check_waves(trace, findings)
    trace = attrs.evolve(trace, diagnostics=findings.diagnostics())
    return trace if KERNELS in files.files else with_flat_geometry(trace)
