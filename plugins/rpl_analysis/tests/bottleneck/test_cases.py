"""Every row of cases.toml through counters, roofline, occupancy and classifier."""

from __future__ import annotations

import json

import pytest

from rpl_analysis.bottleneck import builtin_rules
from rpl_analysis.interfaces import BottleneckLabel
from rpl_report.text import corrections_section

from .conftest import TABLE, case_of

CASES = {entry["name"]: entry for entry in TABLE["case"]}
RULES = {rule.id: rule for rule in builtin_rules()}
#: Occupancy comes in steps of one wave; its thresholds are tested on figures alone (test_classify).
DISCRETE = {"theoretical_occupancy"}


def only_kernel(documents):
    (kernel,) = documents.model("analysis").kernels
    return kernel


def figure(kernel, rule, quantity):
    """The value of ``quantity`` as the rule tested it."""
    for tested in (*kernel.evidence, *kernel.near_misses):
        for condition in tested.conditions:
            if tested.rule == rule and condition.quantity == quantity:
                return condition.value
    raise AssertionError(f"{rule} was not shown with {quantity}")


@pytest.mark.parametrize("name", CASES)
def test_constructed_case(name, documents_of):
    entry = CASES[name]

    found = only_kernel(documents_of(case_of(entry)))

    assert (found.bottleneck, found.confidence) == (entry["label"], entry["confidence"]), found.reason
    if "rule" in entry:
        assert found.evidence[0].rule == entry["rule"]
    if entry.get("headroom") == "null":
        assert found.headroom_fraction is None
        assert found.headroom_reason


@pytest.mark.parametrize(("lanes", "then"), [(64, None), (60, None), (45, "unclassified")])
def test_a_label_that_hangs_on_the_work_of_idle_lanes_says_so(documents_of, lanes, then):
    # FP64 at 70 % of the ceiling as counted, at 49 % with 45 of 64 lanes: no other rule holds then
    counters = {"SQ_INSTS_VALU_FMA_F64": 446_880_000, "SQ_THREAD_CYCLES_VALU": lanes * 223_440_000}
    documents = documents_of(case_of({"counters": counters}))
    found = only_kernel(documents)
    assert (found.bottleneck, found.label_by_active_lanes) == ("compute_throughput_limited", then)

    shown = corrections_section(documents.model("roofline"), documents.model("analysis"), {})
    assert shown.split()[-3:] == (["~57,200,640,000", "~40,219,200,000", "unclassified"] if then else [])


@pytest.mark.data
@pytest.mark.parametrize("entry", TABLE["real"], ids=lambda entry: entry["path"].rsplit("/", 1)[-1])
def test_real_recording(entry, rpl_shared_data, rpl_cli, tmp_path):
    rpl_cli("analyze", rpl_shared_data / entry["path"], "-o", tmp_path / "out").assert_ok()

    (found,) = json.loads((tmp_path / "out" / "analysis.json").read_text())["kernels"]

    assert (found["bottleneck"], found["confidence"]) == (entry["label"], entry["confidence"]), found[
        "reason"
    ]


def test_the_kernels_of_the_demo_have_the_labels_they_were_made_for(rpl_cli, tmp_path):
    rpl_cli("demo", "--recorded", "-o", tmp_path / "run").assert_ok()

    kernels = json.loads((tmp_path / "run" / "analysis.json").read_text())["kernels"]

    names = {k["kernel"]: k["kernel"].partition("<")[0].partition("(")[0] for k in kernels}
    found = {names[k["kernel"]]: (k["bottleneck"], k["confidence"]) for k in kernels}
    assert found == {entry["kernel"]: (entry["label"], entry["confidence"]) for entry in TABLE["demo"]}


@pytest.mark.parametrize(
    "boundary", TABLE["boundary"], ids=lambda boundary: f"{boundary['rule']}-{boundary['quantity']}"
)
def test_boundary_within_one_percent(boundary, documents_of):
    rule = RULES[boundary["rule"]]
    condition = next(c for c in rule.conditions if c.quantity == boundary["quantity"])
    case = case_of(CASES[boundary["case"]])
    start = figure(only_kernel(documents_of(case)), rule.id, condition.quantity)

    def at(share):
        factor = condition.threshold * share / start
        return only_kernel(documents_of(case.scaled(boundary["counters"], factor)))

    over, under = at(1.01), at(0.99)

    inside, outside = (over, under) if condition.comparison.value == ">=" else (under, over)
    assert inside.evidence[0].rule == rule.id
    assert inside.bottleneck == rule.label.value
    assert outside.bottleneck == boundary["outside"]
    assert rule.id not in [tested.rule for tested in outside.evidence]
    assert rule.id in [tested.rule for tested in outside.near_misses]


def test_every_threshold_that_can_be_met_is_in_the_table():
    tested = {(entry["rule"], entry["quantity"]) for entry in TABLE["boundary"]}
    wanted = {(r.id, c.quantity) for r in RULES.values() for c in r.conditions if c.quantity not in DISCRETE}

    assert tested == wanted


def test_every_label_and_every_rule_is_in_the_table():
    assert {entry["label"] for entry in CASES.values()} == {label.value for label in BottleneckLabel}
    assert {entry["rule"] for entry in CASES.values() if "rule" in entry} == set(RULES)


def test_same_case_gives_the_same_bytes(documents_of):
    case = case_of(CASES["bandwidth with enough waves"])

    first, second = documents_of(case), documents_of(case)

    assert first.json("analysis") == second.json("analysis")
