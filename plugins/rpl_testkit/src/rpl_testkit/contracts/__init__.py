"""Contract checks: each takes one contribution and raises ``ContractViolation`` naming the broken rule.

They test what every host relies on (names, types, determinism, "unknown is None with a reason", "a plan
runs nothing"), not whether the contribution is any good.
"""

from __future__ import annotations

from rpl_testkit.contracts.checks import (
    ContractViolation,
    assert_analyzer,
    assert_contribution,
    assert_doctor_check,
    assert_equivalence_check,
    assert_metric,
    assert_proposer,
    assert_renderer,
    assert_rule,
    assert_transformation,
)
from rpl_testkit.contracts.recording import (
    assert_architecture,
    assert_collector,
    assert_device_model,
    assert_reader,
)

__all__ = [
    "ContractViolation",
    "assert_analyzer",
    "assert_architecture",
    "assert_collector",
    "assert_contribution",
    "assert_device_model",
    "assert_doctor_check",
    "assert_equivalence_check",
    "assert_metric",
    "assert_proposer",
    "assert_reader",
    "assert_renderer",
    "assert_rule",
    "assert_transformation",
]
