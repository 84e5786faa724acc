"""The contract of a classifier rule: conditions with sources that can fail, and an explanation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from rpl_analysis.interfaces import Rule


def assert_rule(rule: Rule) -> None:
    """Check one rule."""
    from rpl_analysis.interfaces import Comparison

    subject = demand_kind("rpl_classifier_rules", rule)
    for condition in rule.conditions:
        what = f"condition on {condition.quantity!r}"
        demand(condition.quantity.isidentifier(), subject, f"{what} names no quantity")
        demand(isinstance(condition.comparison, Comparison), subject, f"{what} has no Comparison")
        demand(math.isfinite(condition.threshold), subject, f"{what} has no finite threshold")
        demand(bool(condition.source.strip()), subject, f"{what} must cite its source or say 'chosen'")
