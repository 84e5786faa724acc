"""How often the optimizer accepts candidates that gain nothing, and how often it finds those that gain.

Drives the optimizer's own code (rule, looks, guards on the application, fresh measurement, verdict) with
pairs from the declared model of ``rpl_testkit.pair_model``; nothing is executed. Asked for: at most 1 %
of null candidates accepted at CV 2, 5 and 10 %, at least 99 % of candidates with a gain of 5 % found at CV
2 %. Noise over 10 % gives no acceptance without --force; the nulls are run both ways.

    python benchmarks/closed_loop.py --check            # exit 1 where a figure misses its target
    python benchmarks/closed_loop.py --trials 4000
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import attrs
import numpy as np

from rpl_optimize.contracts import PolicyPart
from rpl_testkit.pair_model import TimingModel, judge_modelled

SEED = 20_260_301
MOST_FALSE = 0.01
LEAST_FOUND = 0.99


@attrs.frozen
class Case:
    """``most`` and ``least`` bound the share of accepted candidates; ``None``: reported only."""

    model: TimingModel
    forced: bool = False
    most: float | None = None
    least: float | None = None

    @property
    def name(self) -> str:
        model = self.model
        forced = ", --force" if self.forced else ""
        return f"CV {model.cv:.0%}, gain {model.gain:.0%}, share {model.share:.0%}{forced}"

    def is_met(self, share: float) -> bool:
        return (self.most is None or share <= self.most) and (self.least is None or share >= self.least)


CASES = (
    *(Case(TimingModel(cv), most=MOST_FALSE) for cv in (0.02, 0.05, 0.10)),
    *(Case(TimingModel(cv), forced=True, most=MOST_FALSE) for cv in (0.05, 0.10)),
    *(Case(TimingModel(cv, share=0.3), forced=True, most=MOST_FALSE) for cv in (0.02, 0.05, 0.10)),
    *(Case(TimingModel(cv, gain=-0.05), forced=True, most=MOST_FALSE) for cv in (0.02, 0.10)),
    Case(TimingModel(0.02, gain=0.05), least=LEAST_FOUND),
    Case(TimingModel(0.02, gain=0.10), least=LEAST_FOUND),
    Case(TimingModel(0.05, gain=0.05)),
    Case(TimingModel(0.05, gain=0.10)),
    Case(TimingModel(0.10, gain=0.20), forced=True),
)


def run_case(case: Case, trials: int, seed: int) -> Counter[str]:
    """Verdicts with their stages. Every case has a generator of its own."""
    generator = np.random.default_rng([seed, CASES.index(case)])
    policy = PolicyPart(force_noisy=case.forced)
    found: Counter[str] = Counter()
    for _ in range(trials):
        judgement = judge_modelled(case.model, generator, policy=policy)
        found[f"{judgement.verdict} at {judgement.stage}"] += 1
    return found


def accepted_share(found: Counter[str]) -> float:
    return sum(count for name, count in found.items() if name.startswith("accepted")) / found.total()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 where a figure misses its target")
    parser.add_argument("--trials", type=int, default=1000, help="candidates per case (default: 1000)")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    met = True
    for case in CASES:
        started = time.process_time()
        found = run_case(case, arguments.trials, arguments.seed)
        share = accepted_share(found)
        met = met and case.is_met(share)
        bound = f" <= {case.most:.0%}" if case.most is not None else ""
        bound = f" >= {case.least:.0%}" if case.least is not None else bound
        mark = "" if case.is_met(share) else "  MISSED"
        stages = ", ".join(f"{name} {count}" for name, count in found.most_common())
        seconds = time.process_time() - started
        print(f"{case.name}: accepted {share:.2%}{bound}{mark}  ({stages}; {seconds:.1f} s)")
    return 0 if met or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
