"""Which steps of one item's history matter: those beyond the limit that still stand at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import attrs

from rpl_compare.comparison.model import CompareRule, ItemKey, Verdict
from rpl_compare.contract import StepPart
from rpl_compare.statistics.steps import FEWEST_ENTRIES, Level, entry_noise, find_levels


@attrs.frozen
class Series:
    """One item over the entries that hold it, oldest first."""

    key: ItemKey
    names: tuple[str, ...]
    log_times: tuple[float, ...]


def judge_series(series: Series, rule: CompareRule) -> tuple[Verdict, str, tuple[StepPart, ...]]:
    """Verdict, its reason, and all steps beyond the limit in either direction.

    A step up that later steps undo is history, not a regression. One that only the newest entry shows is
    inconclusive: it may be an outlier.
    """
    count = len(series.log_times)
    if count < FEWEST_ENTRIES:
        reason = f"{count} entries are too few to tell a step from noise: {FEWEST_ENTRIES} are needed"
        return Verdict.INCONCLUSIVE, reason, ()
    levels = find_levels(series.log_times)
    pairs = [(a, b) for a, b in pairwise(levels) if abs(b.value - a.value) > rule.limit]
    steps = tuple(_step(series, before, after) for before, after in pairs)
    standing = [
        step
        for (before, after), step in zip(pairs, steps, strict=True)
        if after.value > before.value and levels[-1].value - before.value > rule.limit
    ]
    verdict, reason = _verdict(levels, standing, entry_noise(series.log_times), rule)
    return verdict, reason, steps


def _verdict(
    levels: Sequence[Level], standing: Sequence[StepPart], noise: float, rule: CompareRule
) -> tuple[Verdict, str]:
    confirmed = [step for step in standing if step.confirmed]
    if confirmed:
        last = confirmed[-1]
        return Verdict.REGRESSED, f"slower by {last.change:.1%} since {last.entry}"
    if standing:
        return (
            Verdict.INCONCLUSIVE,
            f"slower by {standing[-1].change:.1%} in the newest entry only: one more will tell",
        )
    if noise > rule.limit and not rule.forced:
        return (
            Verdict.INCONCLUSIVE,
            f"the entries vary by {math.expm1(noise):.1%}, so a step of the limit can't be seen",
        )
    if levels[-1].value - levels[0].value < -rule.limit:
        return Verdict.IMPROVED, "faster at the end than at the beginning"
    return Verdict.UNCHANGED, "no standing step beyond the limit"


def _step(series: Series, before: Level, after: Level) -> StepPart:
    return StepPart(
        entry=series.names[after.first],
        previous_entry=series.names[before.last],
        before_ns=math.exp(before.value),
        after_ns=math.exp(after.value),
        change=math.expm1(after.value - before.value),
        entries_before=before.entries,
        entries_after=after.entries,
        confirmed=after.entries > 1,
    )
