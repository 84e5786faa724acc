"""How many errors chance allows, and what the program of known work prints."""

from __future__ import annotations

import math
from itertools import product

import pytest

from rpl_selftest.bench import Sizes
from rpl_selftest.checks.candidates import most_by_chance, read_pairs
from rpl_selftest.known_work import kernels


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


def test_pairs_are_read_and_other_lines_are_not():
    told = b"pair 200 100\nwarning: pair\npair x 1\npair 0 1\npair inf 1\npair 1 1 1\npair 100 100\n"
    assert read_pairs(told) == [pytest.approx(math.log(2)), 0.0]


def test_known_work_by_hand():
    copy, brief, longer, tree = kernels(Sizes(mebibytes=1, iterations=10, repeats=1))
    assert (copy.waves, copy.bytes_moved) == (1024, 2 << 20)  # 2^20 bytes / 16 / 64
    assert (brief.fma_instructions, longer.fma_instructions) == (20, 40)  # 4 waves
    assert tree.waves == 256
