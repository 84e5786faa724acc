"""One run as numbers: a time per kernel and the times of the whole application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.build import measure_path
from rpl_analysis.runtime.grouping import group_durations, group_sums, number_names, usable_rows
from rpl_compare.comparison.model import KernelObservation, Kind, RunObservation, Statistic
from rpl_compare.statistics.robust import median

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.model.trace import Trace


def observe(trace: Trace, statistic: Statistic, *, include_copies: bool) -> RunObservation:
    """Summarise ``trace``, one timing run of possibly several processes.

    Kernels of one displayed name are one kernel, whichever process ran them. ``include_copies`` lets
    copies take part in makespan and critical path.
    """
    dispatches = trace.dispatches
    kernels = _kernels(trace, statistic)
    path = measure_path(trace, include_copies=include_copies)
    times: dict[Kind, float] = {}
    if kernels:
        times[Kind.RUNTIME] = float(sum(kernel.sum_ns for kernel in kernels.values()))
    if path.makespan_ns is not None and path.critical_path_ns is not None:
        times[Kind.MAKESPAN] = float(path.makespan_ns)
        times[Kind.CRITICAL_PATH] = float(path.critical_path_ns)
    return RunObservation(
        kernels=kernels,
        application=times,
        processes=int(np.unique(dispatches.process).size),
        unnamed=int(np.count_nonzero(dispatches.kernel < 0)),
        zero_durations=int(np.count_nonzero(dispatches.end_ns == dispatches.begin_ns)),
        sync_info=path.sync_info,
    )


def observe_process(process_ms: float) -> RunObservation:
    """A run of which only the wall clock of the process is known."""
    return RunObservation(kernels={}, application={Kind.PROCESS_TIME: process_ms * 1e6}, processes=1)


def _kernels(trace: Trace, statistic: Statistic) -> Mapping[str, KernelObservation]:
    dispatches = trace.dispatches
    names, (numbers,) = number_names([trace])
    if not names:
        return {}
    usable = usable_rows(dispatches)
    known = dispatches.kernel >= 0
    damaged = np.bincount(numbers[dispatches.kernel[known & ~usable]], minlength=len(names))
    groups = group_durations(numbers[dispatches.kernel[usable]], dispatches.duration_ns()[usable], len(names))
    sums = group_sums(groups)
    found = {}
    for number, name in enumerate(names):
        durations = groups.group(number)
        if durations.size == 0 and damaged[number] == 0:
            continue
        total = int(sums[number])
        by_median = statistic is Statistic.MEDIAN and durations.size > 0
        found[name] = KernelObservation(
            time_ns=median(durations.tolist()) if by_median else float(total),
            sum_ns=total,
            launches=int(durations.size),
            damaged=int(damaged[number]),
        )
    return found
