"""Runs as samples, from drawn runs, each figure asked anew of the runs that it is about."""

from __future__ import annotations

import random
import statistics

import pytest

from rpl_measure.samples import ItemKey, KernelObservation, Kind, RunObservation, samples_of

NAMES = ("a", "b", "c", "d")


def drawn_run(rng):
    kernels = {
        name: KernelObservation(
            time_ns=float(rng.choice((0, -3, 5, 9, 30))) if rng.random() < 0.2 else rng.uniform(1, 99),
            sum_ns=rng.randint(0, 500),
            launches=rng.randint(0, 9),
            damaged=rng.choice((0, 0, 0, 0, 1, 2)),
        )
        for name in NAMES
        if rng.random() < 0.85
    }
    application = {
        kind: rng.choice((0.0, 100.0, 250.0)) if rng.random() < 0.3 else rng.uniform(100, 900)
        for kind in (Kind.RUNTIME, Kind.MAKESPAN, Kind.CRITICAL_PATH, Kind.PROCESS_TIME)
        if rng.random() < 0.8
    }
    return RunObservation(kernels, application, 1, sync_info=rng.choice(("calls", "calls", "events")))


def expected_problem(values, runs):
    if len(values) < len(runs):
        return f"only {len(values)} of {len(runs)} runs hold it"
    return "a run has a time of zero" if min(values) <= 0 else None


@pytest.mark.parametrize("seed", range(60))
def test_each_item_is_what_its_runs_say(seed):
    rng = random.Random(seed)
    runs = [drawn_run(rng) for _ in range(rng.randint(1, 4))]
    samples = samples_of(runs)
    whole = sum(run.application.get(Kind.RUNTIME, 0.0) for run in runs)
    kinds = {kind for run in runs for kind in run.application}
    names = {name for run in runs for name in run.kernels}
    assert samples.keys() == {
        *(ItemKey(kind, kind.value) for kind in kinds),
        *(ItemKey(Kind.KERNEL, name) for name in names),
    }
    for key, sample in samples.items():
        if key.kind is not Kind.KERNEL:
            values = [run.application[key.kind] for run in runs if key.kind in run.application]
            problem = expected_problem(values, runs)
            if problem is None and key.kind is Kind.CRITICAL_PATH and len({r.sync_info for r in runs}) > 1:
                problem = "not hold the same kind of synchronisation"
            assert (sample.launches, sample.share) == (None, None)
        else:
            seen = [run.kernels[key.name] for run in runs if key.name in run.kernels]
            values = [one.time_ns for one in seen]
            problem = expected_problem(values, runs)
            damaged = sum(one.damaged for one in seen)
            if damaged:
                verb = "ends" if damaged == 1 else "end"
                problem = f"{damaged} of its dispatches {verb} before the begin"
            assert sample.launches == statistics.fmean(one.launches for one in seen)
            share = sum(one.sum_ns for one in seen) / whole if whole else None
            assert sample.share == (None if share is None else pytest.approx(share))
        assert list(sample.values_ns) == values
        assert sample.problem is None if problem is None else problem in sample.problem
