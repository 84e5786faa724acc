"""One answer from many verdicts: pass, regression, or a refusal with its reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from rpl_compare.comparison.model import Judged, Outcome, Verdict
from rpl_core.exit_codes import ExitCode

#: A reason names so many of its items (chosen; the document holds the reason of each).
NAMES_SHOWN = 5

EXIT_CODES = {
    Outcome.PASS: ExitCode.OK,
    Outcome.REGRESSION: ExitCode.NEGATIVE_FINDING,
    Outcome.INCONCLUSIVE: ExitCode.NO_VERDICT,
    Outcome.NO_VERDICT: ExitCode.NO_VERDICT,
}


@attrs.frozen
class Gate:
    """``worst`` is the gated item with the largest slow-down, ``None`` when no change could be estimated."""

    outcome: Outcome
    reasons: tuple[str, ...]
    gated_items: int
    worst: Judged | None

    @property
    def worst_change(self) -> float | None:
        """As a fraction: 0.03 is 3 % slower."""
        if self.worst is None or self.worst.evidence.shift is None:
            return None
        return math.expm1(self.worst.evidence.shift)


def decide(items: Sequence[Judged], blocking: Sequence[str]) -> Gate:
    """The gate over all gated items. It passes only if each of them is proven not to have regressed."""
    gated = [item for item in items if item.gated]
    outcome, reasons = _outcome(gated, blocking)
    known = [item for item in gated if item.evidence.shift is not None]
    worst = max(known, key=lambda item: item.evidence.shift or 0.0, default=None)
    return Gate(outcome, tuple(reasons), len(gated), worst)


def _outcome(gated: Sequence[Judged], blocking: Sequence[str]) -> tuple[Outcome, Sequence[str]]:
    if blocking:
        return Outcome.NO_VERDICT, blocking
    if not gated:
        return Outcome.NO_VERDICT, ("nothing that decides ran on both sides",)
    regressed = [item for item in gated if item.verdict is Verdict.REGRESSED]
    if regressed:
        return Outcome.REGRESSION, _by_reason(regressed)
    open_items = [item for item in gated if not item.excludes_regression]
    if open_items:
        return Outcome.INCONCLUSIVE, _by_reason(open_items)
    return Outcome.PASS, (f"none of {len(gated)} deciding items is slower beyond the limit",)


def _by_reason(items: Sequence[Judged]) -> Sequence[str]:
    """Items with the same reason share a line."""
    names: dict[str, list[str]] = {}
    for item in items:
        names.setdefault(item.reason, []).append(item.key.short_name)
    return [f"{_listed(named)}: {reason}" for reason, named in names.items()]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
