"""The final measurement under the noise of a real GPU: times of whole processes that ran in turns."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from rpl_autotune.outcome import compare_times

pytestmark = pytest.mark.data

ROUNDS = 10
#: The kernels whose work differs between the programs, and the whole.
COLUMNS = ("triad_ns", "fma_ns", "chase_ns", "makespan_ns")


@pytest.fixture
def verdicts(rpl_shared_data):
    """``verdicts("G5", "fma_ns")``: comparisons of that program with the base, ten rounds each."""
    with (rpl_shared_data / "noise_h200" / "runs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))

    def judge(program, column):
        base, other = ([float(r[column]) for r in rows if r["program"] == name] for name in ("A", program))
        return [
            compare_times(other[n : n + ROUNDS], base[n : n + ROUNDS])
            for n in range(0, len(base) - ROUNDS + 1, ROUNDS)
        ]

    return judge


def test_the_same_program_is_rarely_proven_faster_or_slower(verdicts):
    found = [one for column in COLUMNS for one in verdicts("N", column)]
    wrong = [one for one in found if one.interval[0] > 1 or one.interval[1] < 1]
    assert len(found) == 76
    assert len(wrong) <= 8  # 5 % of them by the test; drift of the machine adds some


def test_a_real_gain_is_found_as_large_as_it_is(verdicts):
    assert sum(one.proven for column in COLUMNS for one in verdicts("G5", column)) >= 66
    assert all(one.proven for one in verdicts("G3", "makespan_ns"))
    assert np.median([one.ratio for one in verdicts("G5", "fma_ns")]) == pytest.approx(1.05, abs=0.004)
