"""The counters analyzer gives both facts, or None with a reason in the diagnostics."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.counters import CountersAnalyzer
from rpl_analysis.facts import KERNEL_COUNTERS, KERNEL_QUANTITIES
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.model.device import Formula, Quantity
from rpl_core.model.metric import Exactness, Origin
from rpl_core.model.trace import TraceRole


@pytest.fixture
def analyze(recording):
    def run(device, *traces):
        context = AnalysisContext(recording(*traces), device)
        return CountersAnalyzer().analyze(context)

    return run


def _waves() -> Quantity:
    return Quantity("waves", "wave", (Formula("SQ_WAVES", Exactness.EXACT, "doc"),))


def test_both_facts_are_by_kernel_in_the_order_of_names(analyze, counter_pass, make_device):
    outcome = analyze(
        make_device(_waves()), counter_pass(("b", {"SQ_WAVES": 1024}), ("a", {"SQ_WAVES": 1024}))
    )
    assert list(outcome.facts[KERNEL_COUNTERS]) == ["a", "b"]
    assert outcome.facts[KERNEL_QUANTITIES]["a"].per_launch("waves").value == 1024
    assert outcome.facts[KERNEL_QUANTITIES]["a"].per_launch("unheard_of") is None


def test_without_counter_passes_both_facts_are_none(analyze, counter_pass, make_device):
    timing = attrs.evolve(counter_pass({}), role=TraceRole.TIMING)
    outcome = analyze(make_device(_waves()), timing)
    assert outcome.facts == {KERNEL_COUNTERS: None, KERNEL_QUANTITIES: None}
    assert outcome.diagnostics == ()


def test_an_unknown_device_leaves_the_raw_counters(analyze, counter_pass):
    outcome = analyze(None, counter_pass({"SQ_WAVES": 1024}))
    assert list(outcome.facts[KERNEL_COUNTERS]) == ["kernel"]
    assert outcome.facts[KERNEL_QUANTITIES] is None
    assert [d.code for d in outcome.diagnostics] == ["counters.device_unknown"]


def test_synthetic_passes_give_synthetic_figures(analyze, counter_pass, make_device):
    trace = attrs.evolve(counter_pass({"SQ_WAVES": 1024}), origin=Origin.SYNTHETIC)
    outcome = analyze(make_device(_waves()), trace, counter_pass({"SQ_WAVES": 1024}))
    assert outcome.facts[KERNEL_QUANTITIES]["kernel"].per_launch("waves").origin is Origin.SYNTHETIC


def test_the_same_trouble_of_many_kernels_is_told_once_with_its_count(analyze, counter_pass, make_device):
    difference = Quantity("d", "B", (Formula("max0(A - B)", Exactness.EXACT, "doc"),))
    trace = counter_pass(*((name, {"A": 1, "B": 2}) for name in "xyz"))
    outcome = analyze(make_device(difference), trace)
    assert [(d.code, d.count) for d in outcome.diagnostics] == [("counters.negative_remainder", 3)]
