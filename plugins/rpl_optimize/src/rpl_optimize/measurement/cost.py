"""What measuring costs in runs of the application and in time, said before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_optimize.measurement.placement import PADDINGS, PLACEMENT_PAIRS
from rpl_optimize.measurement.rule import FEWEST_FRESH_PAIRS, MOST_FRESH_PAIRS

if TYPE_CHECKING:
    from rpl_measure.sequential import AcceptRule

#: One discarded run of base and candidate.
WARM_UPS = 2


def measurement_runs(rule: AcceptRule) -> tuple[int, int]:
    """Fewest and most runs of the measurement that decides."""
    return WARM_UPS + 2 * rule.all_looks[0], WARM_UPS + 2 * rule.looks[-1]


def placement_runs() -> int:
    return len(PADDINGS) * (WARM_UPS + 2 * PLACEMENT_PAIRS)


def cost_sentence(rule: AcceptRule, candidates: int, run_s: float | None, *, placement: bool | None) -> str:
    """The cost of a session with ``candidates`` of them, builds, checks and counter passes left out."""
    rejected, most = measurement_runs(rule)
    accepted = WARM_UPS + 2 * rule.looks[0] + 2 * FEWEST_FRESH_PAIRS
    most += 2 * MOST_FRESH_PAIRS + (0 if placement is False else placement_runs())
    text = (
        f"measuring takes {rejected} runs for a candidate that the screening rejects, "
        f"from {accepted} for one that is accepted, and at most {most} for any; "
        f"up to {candidates} candidates"
    )
    if run_s is None:
        return text
    return f"{text}: {_time(candidates * rejected * run_s)} to {_time(candidates * most * run_s)}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
