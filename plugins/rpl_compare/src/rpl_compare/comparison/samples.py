"""From runs to samples: for each item that both sides have, one value per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rpl_compare.comparison.model import ItemKey, Kind, RunObservation, Sample

#: Times of the application in the order in which they are shown.
APPLICATION_KINDS = (Kind.RUNTIME, Kind.MAKESPAN, Kind.CRITICAL_PATH, Kind.PROCESS_TIME)


def kernel_names(runs: Sequence[RunObservation]) -> frozenset[str]:
    """Every kernel that at least one of the runs launched."""
    return frozenset(name for run in runs for name in run.kernels)


def samples_of(runs: Sequence[RunObservation]) -> Mapping[ItemKey, Sample]:
    """All items of one side."""
    kinds = [kind for kind in APPLICATION_KINDS if any(kind in run.application for run in runs)]
    found = {ItemKey(kind, kind.value): _application_sample(runs, kind) for kind in kinds}
    whole = sum(run.runtime_ns or 0.0 for run in runs)
    for name in sorted(kernel_names(runs)):
        found[ItemKey(Kind.KERNEL, name)] = _kernel_sample(runs, name, whole)
    return found


def _application_sample(runs: Sequence[RunObservation], kind: Kind) -> Sample:
    values = tuple(run.application[kind] for run in runs if kind in run.application)
    problem = _problem(values, len(runs))
    if problem is None and kind is Kind.CRITICAL_PATH and len({run.sync_info for run in runs}) > 1:
        problem = "the runs do not hold the same kind of synchronisation records"
    return Sample(values, problem=problem)


def _kernel_sample(runs: Sequence[RunObservation], name: str, whole_ns: float) -> Sample:
    seen = [run.kernels[name] for run in runs if name in run.kernels]
    values = tuple(kernel.time_ns for kernel in seen)
    damaged = sum(kernel.damaged for kernel in seen)
    problem = _problem(values, len(runs))
    if damaged:
        problem = f"{damaged} of its dispatches end before they begin, so its time is not known"
    return Sample(
        values,
        launches=sum(kernel.launches for kernel in seen) / len(seen),
        share=sum(kernel.sum_ns for kernel in seen) / whole_ns if whole_ns > 0 else None,
        problem=problem,
    )


def _problem(values: Sequence[float], runs: int) -> str | None:
    if len(values) < runs:
        return f"only {len(values)} of {runs} runs hold it"
    if any(value <= 0 for value in values):
        return "a run has a time of zero: the timestamps were rounded or damaged"
    return None
