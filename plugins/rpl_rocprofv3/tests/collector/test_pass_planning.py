"""Passes stay within the limits of every block, keep groups together, and refuse dangerous counters."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_core.model.device import CounterMap
from rpl_rocprofv3.collector.passes import block_of, plan_passes

_MAP = CounterMap(
    quantities=(),
    recommended=("SQ_A", "SQ_B", "SQ_C", "TCC_R_sum", "TCC_B_sum"),
    same_pass=(("TCC_R", "TCC_B"),),
    block_limits={"SQ": 2, "TCC": 3},
    block_prefixes=(("SQ_", "SQ"), ("SQC_", "SQ"), ("TCC_", "TCC")),
    dangerous=(("MALL_", "hangs the GPU"),),
)


def test_the_recommended_set_is_the_default():
    plan = plan_passes(_MAP)
    assert plan.passes == (("SQ_A", "SQ_B", "TCC_R_sum", "TCC_B_sum"), ("SQ_C",))
    assert plan.refused == ()


def test_a_group_stays_together_even_when_it_opens_a_pass():
    plan = plan_passes(_MAP, ["TCC_1", "TCC_2", "TCC_R_sum", "TCC_B_sum"])
    assert plan.passes == (("TCC_1", "TCC_R_sum", "TCC_B_sum"), ("TCC_2",))


def test_blocks_share_their_limit_over_prefixes():
    assert plan_passes(_MAP, ["SQ_A", "SQC_B", "SQC_C"]).passes == (("SQ_A", "SQC_B"), ("SQC_C",))


def test_a_counter_of_an_unknown_block_has_a_pass_without_others_of_its_kind():
    assert plan_passes(_MAP, ["FETCH_SIZE", "WRITE_SIZE", "SQ_A"]).passes == (
        ("FETCH_SIZE", "SQ_A"),
        ("WRITE_SIZE",),
    )


def test_dangerous_counters_are_refused_with_the_reason():
    plan = plan_passes(_MAP, ["MALL_BANDWIDTH_ALL", "SQ_A"])
    assert plan.passes == (("SQ_A",),)
    assert [(r.counter, r.reason) for r in plan.refused] == [("MALL_BANDWIDTH_ALL", "hangs the GPU")]


def test_dangerous_counters_are_planned_when_the_user_insists():
    assert plan_passes(_MAP, ["MALL_BANDWIDTH_ALL"], allow_dangerous=True).passes == (
        ("MALL_BANDWIDTH_ALL",),
    )


def test_a_group_too_large_for_its_block_is_refused():
    too_large = CounterMap((), (), (("TCC_1", "TCC_2"),), {"TCC": 1}, (("TCC_", "TCC"),))
    plan = plan_passes(too_large, ["TCC_1", "TCC_2"])
    assert plan.passes == ()
    assert [r.counter for r in plan.refused] == ["TCC_1", "TCC_2"]
    assert "block TCC holds 1" in plan.refused[0].reason


@pytest.mark.parametrize(("counter", "block"), [("SQC_HITS", "SQ"), ("TCC_HIT", "TCC"), ("FETCH_SIZE", None)])
def test_the_block_is_found_by_prefix(counter, block):
    assert block_of(counter, _MAP) == block


def test_the_longest_prefix_wins():
    longer = CounterMap((), (), block_prefixes=(("TC", "A"), ("TCC_", "B")))
    assert block_of("TCC_HIT", longer) == "B"


@given(
    st.lists(
        st.sampled_from([f"{b}_{i}" for b in ("SQ", "SQC", "TCC") for i in range(9)] + ["TCC_R", "TCC_B"])
    )
)
def test_every_counter_is_read_once_within_the_limits(wanted):
    plan = plan_passes(_MAP, wanted)
    assert sorted(c for one in plan.passes for c in one) == sorted(set(wanted))
    for one in plan.passes:
        used = Counter(block_of(counter, _MAP) for counter in one)
        assert all(count <= _MAP.block_limits[block] for block, count in used.items())
    homes = [{i for i, one in enumerate(plan.passes) if c in one} for c in ("TCC_R", "TCC_B") if c in wanted]
    assert len({frozenset(home) for home in homes}) <= 1
