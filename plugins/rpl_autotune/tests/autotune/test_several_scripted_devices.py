"""Searches on several devices that come, go and answer in any order, against what each device is.

A device takes its factor times what a configuration takes, without noise, so that every corrected time is
known beforehand. Whatever the order of answers, the times must be those of one device, every device must be
kept busy and no more, and every answer must be counted once.
"""

from __future__ import annotations

import statistics
from collections import Counter

import numpy as np
import pytest

from rpl_autotune.interfaces import Job, Outcome, Reading
from rpl_autotune.run_job import Cache
from rpl_autotune.templates import Templates
from rpl_core.errors import ApplicationError
from rpl_core.interfaces.executor import Answer, Workers

SIZE, ROUNDS = 12, 6
FAILURES = ("build_failed", "failed", "time_limit", "wrong", "no_time")


class Machines(Workers):
    """Devices of which ``joins`` and ``leaves`` say after how many answers they come and go."""

    def __init__(self, seed, count, budget, fails=None, steady=False):
        self.draw = np.random.default_rng([seed, 29])
        names = [f"gpu{n}" for n in range(count)]
        self.factor = {name: 1.0 + 0.25 * n for n, name in enumerate(names)}
        self.truth = self.draw.permutation(np.arange(1, SIZE + 1)) * 0.5
        self.joins = {name: int(self.draw.integers(0, 6)) if n else 0 for n, name in enumerate(names)}
        # The first one stays, so that a search can end.
        self.leaves = {
            name: self.joins[name] + int(self.draw.integers(1, 9)) if n and self.draw.random() < 0.4 else None
            for n, name in enumerate(names)
        }
        if steady:
            self.joins, self.leaves = dict.fromkeys(names, 0), dict.fromkeys(names)
        self.fails, self.budget = fails or {}, budget
        self.told, self.waiting, self.log, self.final, self.idle = 0, [], [], None, []
        self.several = False
        self.alone = ["gpu0"] if len(self.places()) == 1 else []

    def places(self):
        def is_there(name):
            leaves = self.leaves[name]
            return self.joins[name] <= self.told and (leaves is None or self.told < leaves)

        return tuple(name for name in self.factor if is_there(name))

    def submit(self, task):
        job = Job.model_validate_json(task.argument)
        assert (job.device, job.number) == (task.place, task.number)
        known = {0, *(old.variants[0].index for old, _, _ in self.log)}
        if job.device is None and not job.in_turns and job.variants[0].index not in known:
            assert len(self.waiting) < len(self.places()), "a job that has to wait is asked too early"
        self.several = self.several or (job.device is not None and not job.in_turns)
        load = Counter(place for _, place in self.waiting)
        place = task.place or min(self.places(), key=lambda name: (load[name], self.draw.random()))
        self.waiting.append((job, place))

    def wait(self, timeout_s):
        assert self.waiting, "it waits, and nothing was asked"
        counted = sum(job.device is None for job, _ in self.waiting)
        left = min(self.budget, SIZE) - sum(job.device is None for job, _, _ in self.log)
        # While a device measures the reference, what it had measured before may wait for that.
        if counted == len(self.waiting) and not self.waiting[0][0].in_turns:
            self.idle.append(min(len(self.places()), left) - counted)
        job, place = self.waiting.pop(int(self.draw.integers(len(self.waiting))))
        self.told += 1
        if place not in self.places() and not job.in_turns:
            self.log.append((job, place, None))
            return (Answer(job.number, place, error="it is gone", lost=True),)
        readings = tuple(self._reading(v.index, place, job.rounds) for v in job.variants)
        if job.in_turns:
            self.final = (place, job, readings)
        else:
            self.log.append((job, place, readings[0]))
        outcome = Outcome(number=job.number, device=place, readings=readings)
        return (Answer(job.number, place, outcome.model_dump_json()),)

    def _reading(self, index, place, rounds):
        built = None if self.fails.get(index) == "build_failed" else f"program {index}"
        if index in self.fails:
            return Reading(index=index, state=self.fails[index], reason="scripted", binary=built)
        time_ms = float(self.truth[index] * self.factor[place])
        # The median of an odd number of runs is the middle one, whatever the others are.
        runs = (time_ms * 0.5, time_ms, time_ms * 7) if rounds == 1 else (time_ms,) * rounds
        return Reading(index=index, state="ok", times_ms=runs, origin="measured", binary=built)

    def close(self):
        pass


class Deserted(Machines):
    """The only device leaves after three answers and is back when somebody has waited twice for it."""

    waits_alone = 0

    def places(self):
        return () if self.told == 3 and self.waits_alone < 2 else super().places()

    def wait(self, timeout_s):
        if self.waiting:
            return super().wait(timeout_s)
        assert timeout_s > 0
        self.waits_alone += 1
        assert self.waits_alone < 3, "it waits while a device is there"
        return ()


@pytest.fixture
def searched(search_on):
    """``searched(machines, seed, folder, ...)``: the document of one search on these devices."""

    def run(machines, seed, folder, **more):
        return search_on(
            machines, folder, size=SIZE, budget=machines.budget, rounds=ROUNDS, seed=seed, **more
        )

    return run


def judge(searched, seed, folder):
    """One search judged; what happened in it."""
    budget, count = (SIZE, 8, 5)[seed % 3], 1 + seed % 4
    states = np.random.default_rng(seed).permutation(FAILURES)
    fails = {3: str(states[0]), 7: str(states[1])} if seed % 5 == 0 else {}
    machines = Machines(seed, count, budget, fails)
    document = searched(machines, seed, folder, exhaustive=budget == SIZE)
    happened = set()

    # What one device takes, by whichever told its reference first.
    known = {d.name: d for d in document.devices}
    standard = next(iter(known))
    references = [place for job, place, reading in machines.log if reading is not None and job.device]
    if references:
        happened.add("several")
    # Alone, the first device needs no reference beside the first configuration.
    assert list(known) == list(dict.fromkeys([*machines.alone, *references]))
    for name, device in known.items():
        assert device.reference_ms == pytest.approx(machines.truth[0] * machines.factor[name])
        wanted = machines.factor[standard] / machines.factor[name] if machines.several else None
        assert device.correction == (None if wanted is None else pytest.approx(wanted))
        assert device.evaluations == sum(e.device == name for e in document.evaluations)

    asked = [(job, place, reading) for job, place, reading in machines.log if job.device is None]
    told = {job.variants[0].index: (place, reading) for job, place, reading in asked}
    assert len(document.evaluations) == len(told) == document.evaluated_configs
    for number, evaluation in enumerate(document.evaluations, 1):
        assert evaluation.number == number
        index = evaluation.parameters["N"]
        place, reading = told.pop(index)
        if reading is None:
            happened.add("lost")
            assert (evaluation.state, evaluation.device, evaluation.runtime_ms) == ("lost", None, None)
        elif index in fails:
            assert (evaluation.state, evaluation.device) == (fails[index], place)
            assert (evaluation.runtime_ms, evaluation.reason) == (None, "scripted")
        else:
            assert (evaluation.state, evaluation.device) == ("ok", place)
            assert evaluation.times_ms == reading.times_ms
            assert evaluation.runtime_ms == pytest.approx(machines.truth[index] * machines.factor[standard])
        assert (evaluation.phase == "reference") == (index == 0)
        assert (evaluation.phase == "all") == (budget == SIZE and index != 0)
    assert not told
    good = [e for e in document.evaluations if e.runtime_ms is not None]
    assert document.failed_configs == len(document.evaluations) - len(good)
    assert document.termination_reason == ("exhausted" if budget == SIZE else "budget")
    assert document.evaluated_configs == budget
    assert document.origin == "measured"

    # Every device has work as long as there is any.
    assert max(machines.idle, default=0) <= 0

    place, job, _ = machines.final
    assert place == (standard if standard in machines.places() else machines.places()[0])
    ranked = sorted(good, key=lambda e: e.runtime_ms)
    best, second = ranked[0].parameters["N"], ranked[1].parameters["N"]
    assert [v.index for v in job.variants] == list(dict.fromkeys((best, second, 0)))
    final = document.final
    assert (document.best_config.parameters, final.device, final.swapped) == ({"N": best}, place, False)
    assert document.best_config.runtime_ms == pytest.approx(machines.truth[best] * machines.factor[place])
    over = final.best_over_runner_up
    assert over.ratio == pytest.approx(machines.truth[second] / machines.truth[best])
    assert (over.pairs, over.proven) == (ROUNDS, True)
    assert [m.role for m in final.measured] == ["best", "runner_up", "default"]
    assert final.measured[0].search_ms == pytest.approx(ranked[0].runtime_ms)
    assert statistics.median(final.measured[2].times_ms) == final.measured[2].runtime_ms
    return happened


def test_times_of_devices_that_come_and_go_are_those_of_one(tmp_path, searched):
    happened = Counter(one for seed in range(30) for one in judge(searched, seed, tmp_path))
    assert min(happened[one] for one in ("several", "lost")) >= 3


def test_a_reference_that_fails_on_one_of_several_devices_ends_the_search(tmp_path, searched):
    with pytest.raises(ApplicationError, match=r"fails on gpu\d: (scripted|now gpu1 joins it)"):
        searched(Machines(1, 2, 8, {4: "failed"}), 1, tmp_path, exhaustive=False, default=4)


def test_times_without_a_reference_are_not_mixed_with_those_of_a_device_that_comes_later(tmp_path, searched):
    machines = Machines(3, 2, SIZE, {4: "failed"}, steady=True)
    machines.joins["gpu1"] = 3
    with pytest.raises(ApplicationError, match="fails on gpu0: now gpu1 joins it"):
        searched(machines, 3, tmp_path, exhaustive=True, default=4)
    assert machines.told == 3


def test_a_reference_that_fails_on_the_only_device_costs_only_itself(tmp_path, searched):
    document = searched(Machines(2, 1, 8, {4: "failed"}), 2, tmp_path, exhaustive=False, default=4)
    (device,) = document.devices
    assert (device.reference_ms, device.correction, device.evaluations) == (None, None, 8)
    assert document.failed_configs == 1
    assert document.final.best_over_default is None
    assert [m.runtime_ms is None for m in document.final.measured] == [False, False, True]


@pytest.mark.parametrize("sources", ["what is built from", None])
def test_a_search_made_again_measures_only_what_may_come_out_differently(tmp_path, searched, sources):
    """A longer time limit may let a slow one end; a build that nobody can compare is made again."""
    templates = Templates(("program", "{N}"), ("compiler", "-DN={N}"), sources=sources)
    path = tmp_path / "cache"
    fails = dict(zip((2, 3, 5, 7, 11), FAILURES, strict=True))
    made = []
    for limit_s in (1.0, 1.0, 0.5, 2.0):
        machines = Machines(5, 2, SIZE, fails, steady=True)
        cache = Cache(path, made.append)
        more = {"templates": templates, "limit_s": limit_s, "cache": cache}
        document = searched(machines, 5, tmp_path, exhaustive=True, **more)
        asked = [job.variants[0].index for job, _, _ in machines.log]
        seen = {e.parameters["N"]: (e.state, e.device, e.runtime_ms, e.reason) for e in document.evaluations}
        made.append((asked, seen, {e.parameters["N"] for e in document.evaluations if e.from_cache}))
    (asked, first, kept), *again, longer = made
    assert (sorted(set(asked)), kept) == (list(range(SIZE)), set())
    for asked, seen, kept in (*again, longer):
        fresh = {5} if (asked, seen, kept) == longer else set()
        if sources is None:
            assert set(asked) == set(range(SIZE))
            assert kept == set()
            continue
        assert set(asked) == fresh
        assert kept == set(range(SIZE)) - fresh
        for index in kept:
            state, device, time_ms, reason = seen[index]
            assert (state, reason) == (first[index][0], first[index][3])
            assert device in machines.factor
            assert (time_ms is None) == (state != "ok")
            if state == "ok":
                assert time_ms / machines.truth[index] in [pytest.approx(f) for f in machines.factor.values()]


def test_where_no_device_is_left_one_is_waited_for(tmp_path, searched):
    machines = Deserted(1, 1, SIZE)
    document = searched(machines, 1, tmp_path, exhaustive=True)
    assert machines.waits_alone == 2
    assert len(document.evaluations) == SIZE
