"""Checks on a finished trace that need several of its parts: clocks, launched waves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.columns.id_lookup import positions
from rpl_rocprofv3.readers.columns.row_groups import is_constant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column, Trace
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["check_clock", "check_launch_times", "check_waves", "with_flat_geometry"]

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
