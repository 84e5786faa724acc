"""The tables of docs/reference/statistics.md, 3, as printed there: percent of trials, runs, pairs."""

from __future__ import annotations

#: Trials behind the first table, and behind the one of accept_v1.
TRIALS = 4000
ACCEPT_TRIALS = 3000
#: Every figure is rounded to one decimal.
ROUNDING = 0.05

#: (CV, true gain) of the columns of the first table.
CELLS = ((0.02, 0.0), (0.05, 0.0), (0.10, 0.0), (0.02, 0.05), (0.05, 0.05), (0.05, 0.10))
#: Percent, as printed in the reference.
REFERENCE = {
    "mean of 3, gain > 2 %": (10.9, 30.8, 39.4, 97.0, 78.0, 97.9),
    "mean of 10": (1.1, 16.8, 32.8, 100, 91.6, 100),
    "median of 10": (2.8, 21.5, 35.1, 99.8, 88.0, 99.9),
    "min of 10": (12.2, 31.8, 41.1, 96.5, 75.1, 97.2),
    "MWU p<0.01 and median, n=10": (0.5, 0.4, 0.5, 99.4, 34.6, 96.0),
    "MWU p<0.01 and median, n=20": (0.1, 0.8, 0.5, 100, 75.5, 100),
    "MWU of scaled times, n=20": (0.0, 0.0, 0.1, 98.4, 31.5, 99.7),
    "group-sequential 7/11/15/21": (0.2, 0.3, 0.5, 99.9, 60.6, 99.7),
}
#: Mean runs per arm of the group-sequential rule in the power cells.
REFERENCE_RUNS = (7.8, 15.6, 9.0)
GAINS = (0.0, 0.01, 0.03, 0.05, 0.10, 0.20)
#: accept_v1 under drift: CV -> percent accepted per gain, mean pairs at gain 0 and 5 %.
ACCEPT_REFERENCE = {
    0.01: ((0.0, 2.3, 100, 100, 100, 100), (10.2, 10.0)),
    0.02: ((0.3, 6.6, 93.4, 100, 100, 100), (11.9, 10.7)),
    0.05: ((0.4, 2.5, 25.8, 76.3, 100, 100), (14.7, 21.6)),
    0.10: ((0.5, 1.0, 4.5, 16.5, 79.1, 100), (16.2, 23.1)),
}
