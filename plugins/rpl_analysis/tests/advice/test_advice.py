"""What to do next: advice for every rule, ranked by the what-if, with what would confirm it."""

from __future__ import annotations

import csv
import json

import pytest

from rpl_analysis.advice import builtin_advice
from rpl_analysis.bottleneck import builtin_rules
from rpl_analysis.interfaces import label_name
from rpl_testkit.fixtures import Launch

#: Figures that rules test and no counter gives by itself.
_DERIVED = {"theoretical_occupancy", "grid_fill", "lds_utilization"}


def test_every_label_of_every_rule_has_a_step():
    advice = builtin_advice()
    without = [
        rule.id
        for rule in builtin_rules()
        if not any(
            label_name(rule.label) in each.labels
            and (not each.rules or rule.id in each.rules)
            and not each.conditions
            for each in advice
        )
    ]
    assert without == []


def test_advice_names_rules_and_quantities_that_exist(rpl_host):
    rules = {rule.id for rule in builtin_rules()}
    device = rpl_host("gfx942").catalog.devices().get("mi300x")
    quantities = {quantity.name for quantity in device.counter_map.quantities} | _DERIVED
    for each in builtin_advice():
        assert set(each.rules) <= rules, each.id
        tested = {condition.quantity for condition in each.conditions}
        assert {*each.confirm, *tested} <= quantities, each.id
        assert each.command or each.confirm or each.confirm_unknown, each.id


@pytest.mark.data
def test_a_recorded_copy_is_told_what_would_confirm_its_waits(rpl_shared_data, rpl_cli, tmp_path):
    folder = rpl_shared_data / "counters_gfx942" / "path_MI300X_A1"
    rpl_cli("analyze", folder, "--device", "MI300X", "-o", tmp_path / "out").assert_ok()
    analysis = json.loads((tmp_path / "out" / "analysis.json").read_text())
    (step, *_) = analysis["kernels"][0]["next_steps"]
    with (folder / "pmc_perf.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    waits, cycles = (sum(float(row[name]) for row in rows) for name in ("SQ_WAIT_ANY", "SQ_WAVE_CYCLES"))
    (confirmation, *_) = step["confirm"]
    assert confirmation["quantity"] == "dependency_wait_fraction"
    assert confirmation["value"] == pytest.approx(waits / cycles)
    assert confirmation["counters"] == ["SQ_WAIT_ANY", "SQ_WAVE_CYCLES"]
    explained = rpl_cli("explain", "--run", tmp_path / "out").assert_ok().stdout
    assert "rpl profile --deep-analysis -- COMMAND" in explained
    assert step["source"] in " ".join(explained.split())


@pytest.mark.data
def test_subjects_are_ranked_by_the_what_if(rpl_shared_data, rpl_cli, tmp_path):
    folder = rpl_shared_data / "counters_gfx942" / "path_MI300X_A1"
    rpl_cli("analyze", folder, "--device", "MI300X", "-o", tmp_path / "out").assert_ok()
    dag, analysis = (json.loads((tmp_path / "out" / f"{n}.json").read_text()) for n in ("dag", "analysis"))
    gains = {
        f["name"]: s["application_gain_ns"]
        for f in dag["forecasts"]
        for s in f["speedups"]
        if s["speedup"] == 2
    }
    gains["GPU idle, cause not recorded"] = dag["clock_domains"][0]["idle"]["unattributed_ns"] // 2
    found = analysis["next_steps"]
    assert {entry["subject"]: entry["gain_ns"] for entry in found} == gains
    assert [entry["gain_ns"] for entry in found] == sorted(gains.values(), reverse=True)
    assert found[0]["share"] == pytest.approx(found[0]["gain_ns"] / dag["makespan_ns"])
    assert found[1]["steps"][0]["command"] == "rpl profile -- {command}"


_PLUGIN = """
from rpl_analysis.interfaces import Advice, Comparison, Condition, Rule
from rpl_core import hookimpl

RPL_API = 2

@hookimpl
def rpl_classifier_rules():
    few = Condition("grid_fill", Comparison.BELOW, 2.0, source="chosen")
    return (Rule("tiny", "tiny:tiny", 1000, (few,), "Tiny."),)

@hookimpl
def rpl_advice():
    confirm = ("waves", "ipc", "issue_wait_fraction")
    return (Advice("grow", ("tiny:tiny",), "Grow it.", "my book", confirm=confirm),)
"""


def test_a_plugin_advises_on_its_own_label(rpl_site, rpl_cli, rpl_make_rocpd, tmp_path):
    rpl_site.plugin("tiny", _PLUGIN)
    recording = rpl_make_rocpd([Launch("small", 0, 50)])
    text = rpl_cli("analyze", recording, "--device", "MI300X", "-o", tmp_path / "o").assert_ok().stdout
    (found,) = json.loads((tmp_path / "o" / "analysis.json").read_text())["kernels"]
    (step,) = found["next_steps"]
    assert (step["advice"], step["source"]) == ("grow", "my book")
    # Only what the usual set lacks is asked for by name.
    named = step["command"].partition("--counters ")[2].partition(" ")[0].split(",")
    assert "SQ_WAVES" not in named
    assert "Grow it. Run: rpl profile --roofline" in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "advice"),
    [(("--disable-plugin", "gfx942"), "write-a-device-plugin"), ((), "record-counters")],
)
def test_where_nothing_is_known_one_command_would_tell(rpl_cli, rpl_make_rocpd, words, advice, tmp_path):
    launches = [Launch("plain", 1000 * i, 1000 * i + 900, grid=(304 * 4 * 8 * 256, 1, 1)) for i in range(2)]
    rpl_cli(*words, "analyze", rpl_make_rocpd(launches), "-o", tmp_path / "o").assert_ok()
    (found,) = json.loads((tmp_path / "o" / "analysis.json").read_text())["kernels"]
    assert found["bottleneck"] == "unclassified"
    assert [step["advice"] for step in found["next_steps"]] == [advice]


def test_a_label_whose_plugin_brings_no_advice_leads_to_its_evidence(
    rpl_site, rpl_cli, rpl_make_rocpd, tmp_path
):
    rpl_site.plugin("tiny", _PLUGIN.partition("@hookimpl\ndef rpl_advice")[0])
    recording = rpl_make_rocpd([Launch("small", 0, 50)])
    rpl_cli("analyze", recording, "--device", "MI300X", "-o", tmp_path / "o").assert_ok()
    (found,) = json.loads((tmp_path / "o" / "analysis.json").read_text())["kernels"]
    assert found["bottleneck"] == "tiny:tiny"
    assert [step["advice"] for step in found["next_steps"]] == ["read-the-evidence"]


@pytest.mark.data
def test_a_recorded_gpu_that_nobody_knows_is_not_to_be_named(rpl_shared_data, rpl_cli, tmp_path):
    """Its name would be refused."""
    recording = rpl_shared_data / "rocpd" / "flydsl-gfx1250-v3"
    rpl_cli("analyze", recording, "--device", "gfx1250", "-o", tmp_path / "no").assert_exit(69)
    told = rpl_cli("analyze", recording, "-o", tmp_path / "o").assert_ok()
    assert "--device" not in told.stdout + told.stderr
    kernels = json.loads((tmp_path / "o" / "analysis.json").read_text())["kernels"]
    assert {step["advice"] for kernel in kernels for step in kernel["next_steps"]} == {
        "write-a-device-plugin"
    }


@pytest.mark.data
def test_a_missing_hbm_ceiling_says_why_and_what_gives_one(rpl_shared_data, rpl_cli, tmp_path):
    """The recording says the family only, whose products differ in their memory."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    for path in (rpl_shared_data / "counters_gfx942" / "path_MI300X_A1").glob("*.csv"):
        if path.name != "sysinfo.csv":
            (folder / path.name).write_bytes(path.read_bytes())
    rpl_cli("analyze", folder, "--device", "gfx942", "-o", tmp_path / "o").assert_ok()
    told = " ".join(rpl_cli("explain", "--run", tmp_path / "o").assert_ok().stdout.split())
    assert "HBM ceiling is known for gfx942, one of mi300x, mi300a" in told
    assert "; name the product with --device" in told
