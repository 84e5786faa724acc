"""What is said of candidates that were judged, how many errors chance allows, and work by hand."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import pytest

from rpl_measure.sequential import AcceptRule
from rpl_selftest.bench import Bench, Sizes, kernels, kernels_of_testbed
from rpl_selftest.check import NotPossibleError, Outcome
from rpl_selftest.checks import candidates
from rpl_selftest.checks.candidates import Judged, most_by_chance

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("trials", "probability"), [(8, 0.05), (10, 0.2), (12, 0.01)])
def test_the_count_that_chance_allows_by_going_through_all_outcomes(trials, probability):
    more = [0.0] * (trials + 1)  # P(more than k), each sequence of hits and misses added up
    for hits in product((0, 1), repeat=trials):
        weight = math.prod(probability if hit else 1 - probability for hit in hits)
        for k in range(sum(hits)):
            more[k] += weight
    assert most_by_chance(trials, probability) == next(k for k, tail in enumerate(more) if tail < 0.001)


def test_sixty_candidates_without_a_gain_may_give_four_errors():
    """P(more than 3) is 0.0032 and P(more than 4) 0.0004 (Poisson of 0.6: 0.0034 and 0.0004)."""
    assert most_by_chance(60, 0.01) == 4


def judged(accepted, gain=0.0476, cv=0.003):
    return Judged(accepted, gain, cv)


@pytest.fixture
def bench(tmp_path, rpl_host, monkeypatch):
    """With a rule, and no program: ``_judge`` is in the place of process runs."""
    made = Bench(folder=tmp_path, host=rpl_host())
    made.once("rule", lambda: AcceptRule(alpha=0.05 / 3))
    return made


def given(monkeypatch, *outcomes):
    left = iter(outcomes)
    monkeypatch.setattr(candidates, "_judge", lambda *_, **__: next(left, None))


def test_null_candidates_that_are_accepted_are_refuted(bench, monkeypatch):
    given(monkeypatch, judged(True), judged(True), judged(False))
    found = candidates.null_candidates(bench)
    assert found.outcome is Outcome.REFUTED
    assert found.found.startswith("2 of 3 accepted, at most 1 come by chance")


def test_candidates_with_a_gain_that_are_missed_are_refuted(bench, monkeypatch):
    given(monkeypatch, judged(False), judged(False))
    assert candidates.delayed_candidates(bench).outcome is Outcome.REFUTED


def test_a_gain_of_another_size_is_refuted(bench, monkeypatch):
    given(monkeypatch, judged(True, gain=0.037), judged(True, gain=0.036))
    assert candidates.delayed_candidates(bench).outcome is Outcome.REFUTED


def test_a_gain_that_noise_hides_is_not_possible(bench, monkeypatch):
    given(monkeypatch, judged(False, cv=0.03), judged(False, cv=0.03))
    with pytest.raises(NotPossibleError, match=r"times spread by 3\.0%"):
        candidates.delayed_candidates(bench)


def test_times_in_which_nothing_is_judged_are_not_possible(bench, monkeypatch):
    given(monkeypatch, *[judged(False, cv=0.2)] * 3)
    with pytest.raises(NotPossibleError, match=r"spread by 20\.0%"):
        candidates.null_candidates(bench)


def test_those_that_the_time_does_not_hold_are_not_counted(bench, monkeypatch):
    given(monkeypatch, judged(False))
    assert candidates.null_candidates(bench).found.startswith(
        "0 of 1 accepted (the time did not hold all 3), at most 1 come by chance"
    )
    other = Bench(folder=bench.folder, host=bench.host)
    other.once("rule", AcceptRule)
    given(monkeypatch, judged(True))
    with pytest.raises(NotPossibleError, match="the time held 1 of 2: too few"):
        candidates.delayed_candidates(bench)
    with pytest.raises(NotPossibleError, match="no candidate could be judged"):
        candidates.null_candidates(other)


def test_time_is_shared_as_process_runs_are_and_ends_with_the_whole(tmp_path, rpl_host, monkeypatch):
    """With --full 60 * 13 = 780 and 20 * 32 = 640 runs share 1800 s."""
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    full = Bench(folder=tmp_path, host=rpl_host(), full=True)
    assert candidates._time_for(full, delayed=False) == pytest.approx(1800 * 780 / 1420)
    assert candidates._time_for(full, delayed=True) == pytest.approx(1800 * 640 / 1420)
    late = Bench(folder=tmp_path, host=rpl_host(), full=True, deadline=100.0)
    assert candidates._time_for(late, delayed=True) == pytest.approx(85.0)


def test_known_work_by_hand():
    copy, brief, longer, tree = kernels(Sizes(mebibytes=1, iterations=10, repeats=1))
    assert (copy.waves, copy.bytes_moved) == (1024, 2 << 20)  # 2^20 bytes / 16 / 64
    assert (brief.fma_instructions, longer.fma_instructions) == (20, 40)  # 4 waves
    assert tree.waves == 256
    programs = kernels_of_testbed()
    assert [one.waves for one in programs["gemm"]] == [144, 144]  # 96 * 96 / 64
    assert [one.waves for one in programs["mfma_gemm"]] == [36]  # 6 * 6 tiles of 16 * 16
    assert [one.waves for one in programs["reduction"]] == [128, 1]
    assert [one.waves for one in programs["stencil"]] == [196]  # 7 * 7 tiles of 4 waves
    assert programs["gemm"][0].is_symbol("_Z10gemm_naivePKfS0_Pfj")
    assert not programs["gemm"][0].is_symbol("_Z11gemm_naivePKfS0_Pfj")


def test_the_testbed_is_shipped_as_it_is_in_the_checkout():
    from importlib.resources import files

    shipped = files("rpl_selftest").joinpath("programs", "testbed")
    for name in ("check.h", *(f"{program}.hip" for program in kernels_of_testbed())):
        assert shipped.joinpath(name).read_bytes() == (ROOT / "examples" / "testbed" / name).read_bytes()
