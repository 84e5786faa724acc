"""Contract checks of device models, rules and edit candidates: each rule can fail."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.interfaces import BottleneckLabel, Comparison, Condition, Rule
from rpl_core.model.device import (
    CeilingOrigin,
    ComputeCeiling,
    CounterMap,
    DeviceModel,
    Formula,
    MemoryCeiling,
    Pipe,
    Quantity,
    Refinement,
    TypedWork,
)
from rpl_core.model.metric import Exactness
from rpl_gfx942.products import FACTS
from rpl_testkit.contracts import ContractViolation, assert_device_model, assert_rule

HBM = MemoryCeiling("hbm", 1638.4, CeilingOrigin.SPEC, "data sheet")
F64 = ComputeCeiling("F64", Pipe.VALU, 22_630.0, CeilingOrigin.SPEC, "data sheet")
READS = Formula("64 * (RDREQ - RDREQ_32B) + 32 * max0(RDREQ_32B)", Exactness.EXACT, "manual 1.3")
COUNTERS = CounterMap(
    quantities=(Quantity("hbm_read_bytes", "B", (READS,)),),
    recommended=("SQ_WAVES", "TCC_EA_RDREQ_sum"),
    same_pass=(("TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum"),),
    block_limits={"SQ": 8, "TCC": 4},
    block_prefixes=(("SQ_", "SQ"), ("TCC_", "TCC")),
    dangerous=(("SQ_ACCUM", "hangs"),),
)
GOOD = DeviceModel(
    name="MI210",
    architecture="gfx90a",
    product="AMD Instinct MI210",
    chip_ids=(0x740F,),
    compute_units=104,
    xcd_count=1,
    simd_per_cu=4,
    wave_size=64,
    max_waves_per_simd=8,
    lds_bytes_per_cu=65536,
    clock_mhz=1700.0,
    l2_bytes=8 << 20,
    llc_bytes=None,
    l2_channels=32,
    fp32_valu_width=None,
    compute_ceilings=(F64,),
    memory_ceilings=(HBM,),
    counter_map=COUNTERS,
    source="data sheet",
    unknown_facts=("llc_bytes: the product has none", "fp32_valu_width: undocumented"),
)


def with_counters(**changes):
    return {"counter_map": attrs.evolve(COUNTERS, **changes)}


def with_formula(**changes):
    return with_counters(quantities=(Quantity("q", "B", (attrs.evolve(READS, **changes),)),))


def test_a_complete_device_model_passes():
    assert_device_model(GOOD)
    assert_device_model(attrs.evolve(GOOD, architecture_facts=attrs.evolve(FACTS, name="gfx90a")))


def with_facts(**limits):
    occupancy = attrs.evolve(FACTS.occupancy, **limits)
    return {"architecture_facts": attrs.evolve(FACTS, name="gfx90a", occupancy=occupancy)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture_facts": FACTS}, "not of gfx90a"),
        (with_facts(simds_per_cu=0), "occupancy.simds_per_cu"),
        (with_facts(register_files=()), "must have a file"),
        (with_facts(max_lds_bytes_per_workgroup=1 << 20), "fits where it runs"),
        (with_facts(source=" "), "must cite its source"),
        (with_counters(work=(TypedWork("no_such", "F4", Pipe.MFMA),)), "unknown quantities"),
        (with_counters(memory_bytes=()), "memory_bytes"),
        ({"name": "MI 210"}, "unusable name"),
        ({"architecture": "MI210"}, "lower case"),
        ({"compute_units": 0}, "compute_units"),
        ({"compute_units": None}, "unknown_facts must name it"),
        ({"clock_mhz": float("nan")}, "clock_mhz"),
        ({"wave_size": None}, "wave_size"),
        ({"chip_ids": (0x12345,)}, "16 bits"),
        ({"source": " "}, "source"),
        ({"compute_ceilings": (F64, F64)}, "given twice"),
        ({"compute_ceilings": (attrs.evolve(F64, source=""),)}, "cite its source"),
        ({"compute_ceilings": (attrs.evolve(F64, peak_gflops=0.0),)}, "peak_gflops"),
        ({"memory_ceilings": (HBM, HBM)}, "given twice"),
        ({"memory_ceilings": (attrs.evolve(HBM, level="dram"),)}, "unknown"),
        ({"memory_ceilings": (attrs.evolve(HBM, peak_gbps=float("inf")),)}, "peak_gbps"),
        (with_counters(recommended=("SQ_WAVES", "SQ_WAVES")), "given twice"),
        (with_counters(recommended=("SQ_ACCUM_PREV",)), "dangerous"),
        (with_counters(recommended=("TA_BUSY",)), "no block prefix"),
        (with_counters(same_pass=(("TCC_A", "TCC_B", "TCC_C", "TCC_D", "TCC_E"),)), "TCC holds 4"),
        (with_counters(quantities=(Quantity("q", "B", ()),)), "a formula or is a sum"),
        (with_counters(quantities=(Quantity("q", "", (READS,)),)), "unit"),
        (with_counters(quantities=(Quantity("q", "B", sum_of=("p",)),)), "unknown quantities: \\['p'\\]"),
        (with_formula(refinements=(Refinement("RDREQ if 1 else 2", Exactness.EXACT),)), "IfExp"),
        (with_formula(source=""), "cite its source"),
        (with_formula(exactness=Exactness.INTERVAL), "upper_expression"),
        (with_formula(upper_expression="RDREQ"), "upper_expression"),
        (with_formula(expression="RDREQ +"), "not arithmetic"),
        (with_formula(expression="__import__('os').system('true')"), "not allowed"),
        (with_formula(expression="RDREQ.real"), "Attribute, which is not allowed"),
        (with_formula(expression="min(RDREQ, 3)"), "not allowed"),
        (with_formula(expression="RDREQ ** 2"), "not allowed"),
        (with_formula(expression="RDREQ * 'a'"), "not allowed"),
    ],
)
def test_a_device_model_that_breaks_a_rule_fails(changes, message):
    with pytest.raises(ContractViolation, match=message):
        assert_device_model(attrs.evolve(GOOD, **changes))


LOW_OCCUPANCY = Condition("occupancy", Comparison.BELOW, 0.25, "chosen")
RULE = Rule("under-occupied", BottleneckLabel.UNDER_OCCUPIED, 3, (LOW_OCCUPANCY,), "Too few waves.")


def test_a_complete_rule_passes():
    assert_rule(RULE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"explanation": ""}, "explanation"),
        ({"priority": 1.5}, "priority"),
        ({"conditions": (attrs.evolve(LOW_OCCUPANCY, source=""),)}, "cite its source"),
        ({"conditions": (attrs.evolve(LOW_OCCUPANCY, threshold=float("nan")),)}, "finite"),
        ({"conditions": (attrs.evolve(LOW_OCCUPANCY, quantity="two words"),)}, "no quantity"),
        ({"conditions": (attrs.evolve(LOW_OCCUPANCY, comparison="<"),)}, "Comparison"),
    ],
)
def test_a_rule_that_breaks_a_rule_fails(changes, message):
    with pytest.raises(ContractViolation, match=message):
        assert_rule(attrs.evolve(RULE, **changes))


@pytest.mark.parametrize(
    ("changes", "message"), [({"conditions": ()}, "always win"), ({"label": "slow"}, "plugin:label")]
)
def test_a_rule_that_can_t_be_is_not_made(changes, message):
    with pytest.raises(ValueError, match=message):
        attrs.evolve(RULE, **changes)
