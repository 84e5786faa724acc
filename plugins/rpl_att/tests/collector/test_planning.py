"""Which kernels are traced."""

from __future__ import annotations

import pytest

from rpl_att.collector import KernelTarget, most_critical
from rpl_core.errors import MissingError


def kernel(name: str, weight: float | None, time: float | None, launches: float = 1) -> dict:
    return {"name": name, "criticality_weight": weight, "runtime_ms": time, "launches": launches}


def test_kernels_are_ranked_by_weight_then_time_then_name():
    kernels = [
        kernel("slow", 0.1, 9.0),
        kernel("b", None, 1.0),
        kernel("a", None, 1.0),
        kernel("critical", 0.9, 2.0, launches=3),
        kernel("untimed", None, None),
    ]
    ranked = most_critical({"profile": {"kernels": kernels}}, 9)
    assert [target.name for target in ranked] == ["critical", "slow", "a", "b", "untimed"]
    assert most_critical({"profile": {"kernels": kernels}}, 1) == (KernelTarget("critical", 3),)


def test_without_a_profile_nothing_is_ranked():
    with pytest.raises(MissingError, match=r"profile\.json"):
        most_critical({}, 3)
