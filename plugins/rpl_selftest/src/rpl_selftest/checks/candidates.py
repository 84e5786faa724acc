"""The rule by which `rpl optimize` accepts, on this machine's own noise: candidates whose gain is known.

Both sides are launches of one loop; the base has more steps where a gain is built in. Pairs are launches of
one process, in the order that the rule draws, not process runs as an optimization takes: 80 candidates then
cost a minute instead of hours. So this is about noise of kernels, not of process starts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rpl_measure.estimates import median
from rpl_measure.sequential import AcceptRule, Decision, last_look, new_first
from rpl_selftest.check import Check, Finding, NotPossibleError, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_measure.sequential import Look
    from rpl_selftest.bench import Bench

_RULE = AcceptRule()
_NULL, _DELAYED = (60, 12), (20, 8)  # with --full, with --quick
_PERMILLE = 50
_LINE = ("pair", "BASE_NS", "NEW_NS")
#: What a base of 105 % of the steps takes more than 100 %: a gain of 5 / 105.
_GAIN = 1 - 1000 / (1000 + _PERMILLE)
#: Such a count of errors, or a worse one, comes by chance once in a thousand self-tests (chosen).
_BY_CHANCE = 0.001
#: Of a gain that is well above the minimum detectable one, which is found with 0.8 (chosen).
_POWER = 0.95


def _looks(bench: Bench, name: str, candidates: int, permille: int) -> tuple[Look, ...]:
    if bench.emulated:
        raise NotPossibleError("times of this device are modelled: they have no noise to decide in")
    bench.timing()  # who can't be timed at all gives no candidates either
    return bench.once(
        name, lambda: tuple(_look(bench, 2 * n + bool(permille), permille) for n in range(candidates))
    )


def _look(bench: Bench, seed: int, permille: int) -> Look:
    program, _ = bench.build()
    order = "".join(str(int(first)) for first in new_first(seed, _RULE.looks[-1]))
    answer = bench.run(program, "pairs", bench.sizes.iterations, permille, order)
    ratios = read_pairs(answer.stdout)
    look = last_look(ratios, {}, _RULE)
    if look is None:
        raise NotPossibleError(f"the program of known work timed {len(ratios)} of {len(order)} pairs")
    return look


def read_pairs(stdout: bytes) -> Sequence[float]:
    """ln(base / new) of each line ``pair BASE_NS NEW_NS``."""
    ratios = []
    for line in stdout.decode("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) == len(_LINE) and words[0] == _LINE[0]:
            try:
                base, new = float(words[1]), float(words[2])
            except ValueError:
                continue
            if base > 0 and new > 0 and math.isfinite(base + new):
                ratios.append(math.log(base / new))
    return ratios


def null_candidates(bench: Bench) -> Finding:
    candidates = _NULL[not bench.full]
    looks = _looks(bench, "null", candidates, 0)
    accepted = sum(look.decision is Decision.ACCEPTED for look in looks)
    most = most_by_chance(candidates, _RULE.alpha)
    found = f"{accepted} of {candidates} accepted, at most {most} come by chance"
    return judged(accepted <= most, found, accepted=accepted, candidates=candidates)


def delayed_candidates(bench: Bench) -> Finding:
    candidates = _DELAYED[not bench.full]
    looks = _looks(bench, "delayed", candidates, _PERMILLE)
    accepted = sum(look.decision is Decision.ACCEPTED for look in looks)
    gain = 1 - median([look.ratio for look in looks])
    least = candidates - most_by_chance(candidates, 1 - _POWER)
    detectable = [look.minimum_detectable_gain for look in looks if look.minimum_detectable_gain is not None]
    if accepted < least and detectable and median(detectable) > _GAIN:
        raise NotPossibleError(
            f"times are too noisy here: gains below {median(detectable):.1%} can't be told"
        )
    found = f"{accepted} of {candidates} accepted, at least {least} must be; a gain of {gain:.2%}"
    holds = accepted >= least and abs(gain - _GAIN) <= _GAIN / 5
    return judged(holds, found, accepted=accepted, candidates=candidates, gain=gain)


def most_by_chance(trials: int, probability: float) -> int:
    """The least k with P(more than k of ``trials``) < 0.001, of a binomial distribution."""
    tail, k = 1.0, -1
    while tail >= _BY_CHANCE:
        k += 1
        tail -= math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k)
    return k


CANDIDATES = (
    Check(
        "candidates-null",
        f"{_NULL[0]} candidates ({_NULL[1]} with --quick) that change nothing, by the rule of rpl optimize",
        f"as few accepted as an error of {_RULE.alpha:.0%} allows, but once in 1000 self-tests",
        "docs/reference/statistics.md",
        null_candidates,
    ),
    Check(
        "candidates-delayed",
        f"{_DELAYED[0]} ({_DELAYED[1]} with --quick) against a base with {_PERMILLE / 10:.0f} % more steps",
        f"as many accepted as a power of {_POWER:.0%} gives, but once in 1000; a gain of {_GAIN:.2%} +- 1/5",
        "docs/optimize.md",
        delayed_candidates,
    ),
)
