"""Runs as numbers: each trace as one observation, and for each item of a side one value per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.build import measure_path
from rpl_analysis.runtime.timing import group_durations, group_sums, number_names, usable_rows
from rpl_core.text import counted, shorten
from rpl_core.values import frozen
from rpl_measure.rank_tests import median

if TYPE_CHECKING:
    from rpl_core.model.trace import Trace


class Statistic(str, Enum):
    """What stands for a kernel in one run. Dispatches of a run are correlated and never pooled."""

    SUM = "sum"
    MEDIAN = "median"


class Kind(str, Enum):
    KERNEL = "kernel"
    RUNTIME = "runtime"  # sum of all dispatches
    MAKESPAN = "makespan"  # from the first begin to the last end
    CRITICAL_PATH = "critical_path"
    PROCESS_TIME = "process_time"  # wall clock, where no GPU trace exists


@frozen
class ItemKey:
    """One thing that is compared."""

    kind: Kind
    name: str

    @property
    def short_name(self) -> str:
        """For sentences; kernel names may have thousands of characters."""
        return shorten(self.name, 60)


@frozen
class KernelObservation:
    """One kernel in one run. ``damaged`` counts dispatches that end before they begin."""

    time_ns: float
    sum_ns: int
    launches: int
    damaged: int


@frozen
class RunObservation:
    """One process run, summarised. A time is ``None`` where the run does not tell it."""

    kernels: Mapping[str, KernelObservation]
    application: Mapping[Kind, float]
    processes: int
    unnamed: int = 0  # dispatches without a kernel name, which no kernel's time holds
    zero_durations: int = 0
    sync_info: str | None = None  # what the edges of the critical path rest on

    @property
    def runtime_ns(self) -> float | None:
        return self.application.get(Kind.RUNTIME)


@frozen
class Sample:
    """The statistic of one item in each run of one side. ``problem`` says why it can't be judged."""

    values_ns: tuple[float, ...]
    launches: float | None = None
    share: float | None = None
    problem: str | None = None


#: Times of the application in the order in which they are shown.
APPLICATION_KINDS = (Kind.RUNTIME, Kind.MAKESPAN, Kind.CRITICAL_PATH, Kind.PROCESS_TIME)


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
    observed = {}
    for number, name in enumerate(names):
        durations = groups.group(number)
        if durations.size == 0 and damaged[number] == 0:
            continue
        total = int(sums[number])
        by_median = statistic is Statistic.MEDIAN and durations.size > 0
        observed[name] = KernelObservation(
            time_ns=median(durations.tolist()) if by_median else float(total),
            sum_ns=total,
            launches=int(durations.size),
            damaged=int(damaged[number]),
        )
    return observed


def kernel_names(runs: Sequence[RunObservation]) -> frozenset[str]:
    """Every kernel that at least one of the runs launched."""
    return frozenset(name for run in runs for name in run.kernels)


def samples_of(runs: Sequence[RunObservation]) -> Mapping[ItemKey, Sample]:
    """All items of one side."""
    kinds = [kind for kind in APPLICATION_KINDS if any(kind in run.application for run in runs)]
    samples = {ItemKey(kind, kind.value): _application_sample(runs, kind) for kind in kinds}
    whole = sum(run.runtime_ns or 0.0 for run in runs)
    for name in sorted(kernel_names(runs)):
        seen = [run.kernels[name] for run in runs if name in run.kernels]
        values = tuple(kernel.time_ns for kernel in seen)
        damaged = sum(kernel.damaged for kernel in seen)
        problem = _problem(values, len(runs))
        if damaged:
            ends = counted(damaged, "of its dispatches ends", "of its dispatches end")
            problem = f"{ends} before the begin, so its time is not known"
        samples[ItemKey(Kind.KERNEL, name)] = Sample(
            values,
            launches=sum(kernel.launches for kernel in seen) / len(seen),
            share=sum(kernel.sum_ns for kernel in seen) / whole if whole > 0 else None,
            problem=problem,
        )
    return samples


def _application_sample(runs: Sequence[RunObservation], kind: Kind) -> Sample:
    values = tuple(run.application[kind] for run in runs if kind in run.application)
    problem = _problem(values, len(runs))
    if problem is None and kind is Kind.CRITICAL_PATH and len({run.sync_info for run in runs}) > 1:
        problem = "the runs do not hold the same kind of synchronisation records"
    return Sample(values, problem=problem)


def _problem(values: Sequence[float], runs: int) -> str | None:
    if len(values) < runs:
        return f"only {len(values)} of {runs} runs hold it"
    if any(value <= 0 for value in values):
        return "a run has a time of zero: the timestamps were rounded or damaged"
    return None
