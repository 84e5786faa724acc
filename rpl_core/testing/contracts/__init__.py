"""Contract checks: each takes one contribution and raises ``ContractViolation`` naming the broken rule.

They test what every host relies on (names, types, determinism, "unknown is None with a reason", "a plan
runs nothing"), not whether the contribution is any good.
"""

from __future__ import annotations

from rpl_core.testing.contracts.analyzer import assert_analyzer
from rpl_core.testing.contracts.collector import assert_collector
from rpl_core.testing.contracts.device_model import assert_device_model
from rpl_core.testing.contracts.doctor_check import assert_doctor_check
from rpl_core.testing.contracts.equivalence_check import assert_equivalence_check
from rpl_core.testing.contracts.proposer import assert_proposer
from rpl_core.testing.contracts.reader import assert_reader
from rpl_core.testing.contracts.renderer import assert_renderer
from rpl_core.testing.contracts.replayer import assert_replayer
from rpl_core.testing.contracts.rule import assert_rule
from rpl_core.testing.contracts.transformation import assert_transformation
from rpl_core.testing.contracts.violation import ContractViolation

__all__ = [
    "ContractViolation",
    "assert_analyzer",
    "assert_collector",
    "assert_device_model",
    "assert_doctor_check",
    "assert_equivalence_check",
    "assert_proposer",
    "assert_reader",
    "assert_renderer",
    "assert_replayer",
    "assert_rule",
    "assert_transformation",
]
