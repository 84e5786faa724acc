"""Contract checks: each takes one contribution and raises ``ContractViolation`` naming the broken rule.

They test what every host relies on (names, types, determinism, "unknown is None with a reason", "a plan
runs nothing"), not whether the contribution is any good.
"""

from __future__ import annotations

from rpl_testkit.contracts.analysis import assert_analyzer, assert_doctor_check, assert_renderer, assert_rule
from rpl_testkit.contracts.optimizer import (
    assert_equivalence_check,
    assert_metric,
    assert_proposer,
    assert_transformation,
)
from rpl_testkit.contracts.recording import (
    assert_architecture,
    assert_collector,
    assert_device_model,
    assert_reader,
)
from rpl_testkit.contracts.violation import ContractViolation, assert_contribution

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
