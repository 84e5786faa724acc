"""A stranger's distribution adds a rule, an analysis with a section, an export format and an option.

Nothing of rpl is changed for it, and nothing of it is named anywhere in rpl.
"""

from __future__ import annotations

import json

import pytest

PLUGIN = """
from rpl_core import hookimpl

RPL_API = 2


@hookimpl
def rpl_options():
    from rpl_stranger.parts import LEAST_LAUNCHES
    return (LEAST_LAUNCHES,)


@hookimpl
def rpl_classifier_rules():
    from rpl_stranger.parts import rules
    return rules()


@hookimpl
def rpl_analyzers():
    from rpl_stranger.parts import Launches
    return (Launches(),)


@hookimpl
def rpl_documents():
    from rpl_stranger.parts import LaunchSection
    return (LaunchSection(),)


@hookimpl
def rpl_report_sections():
    from rpl_stranger.parts import LaunchReport
    return (LaunchReport(),)


@hookimpl
def rpl_exporters():
    from rpl_stranger.parts import LaunchExport
    return (LaunchExport(),)
"""

PARTS = """
from pydantic import BaseModel

from rpl_core.config import positive_int
from rpl_core.interfaces.analyzer import AnalysisOutcome, Analyzer
from rpl_core.interfaces.document import DocumentSection
from rpl_report.interfaces import Exporter, ExportRequest
from rpl_core.interfaces.analyzer import Fact, KernelFigure
from rpl_core.interfaces.options import CommandOption
from rpl_analysis.interfaces import Comparison, Condition, Rule
from rpl_core.interfaces.section import Paragraph, ReportSection, Table
from rpl_core.model.metric import Exactness, Metric

LEAST_LAUNCHES = CommandOption(
    name="least-launches", commands=("analyze",), parse=positive_int, default=1,
    help="Kernels with fewer launches are left out.", metavar="N", setting=True,
)
LAUNCHES = KernelFigure("launch_count")
SUMMARY = Fact("launch_summary", dict, published=True)


class Launches(Analyzer):
    name = "launches"
    summary = "launches of every kernel"
    provides = frozenset({LAUNCHES, SUMMARY})

    def analyze(self, context):
        counts = {}
        for trace in context.recording.timing_runs:
            for kernel in trace.dispatches.kernel.tolist():
                name = trace.kernels[kernel].name
                counts[name] = counts.get(name, 0) + 1
        least = context.options[LEAST_LAUNCHES]
        kept = {name: count for name, count in counts.items() if count >= least}
        figures = {name: Metric(float(n), "launches", Exactness.EXACT) for name, n in kept.items()}
        return AnalysisOutcome({LAUNCHES: figures, SUMMARY: {"kernels": len(kept), "least": least}})


class LaunchPart(BaseModel):
    kernels: int
    least: int


class LaunchSection(DocumentSection):
    name, summary = "launches", "how often kernels were launched"
    document, field = "profile", "launches_by_stranger"

    def model(self):
        return LaunchPart

    def draft(self, context):
        return LaunchPart(**context.facts[SUMMARY])


class LaunchReport(ReportSection):
    name, summary, title = "launches", "how often kernels were launched", "Launches <counted>"

    def blocks(self, request):
        section = request.documents["profile"].sections["launches_by_stranger"]
        return (
            Paragraph(f"{section['kernels']} kernel with at least {section['least']} launch"),
            Table(("what", "value"), (("kernels", str(section["kernels"])),), right=("value",)),
        )

    def explain(self, request, kernel):
        return (Paragraph(f"the stranger says of {kernel[:7]}: launched"),)


class LaunchExport(Exporter):
    name, summary, suffix = "launch-list", "names of launched kernels", ".txt"

    def export(self, request: ExportRequest) -> bytes:
        names = {k.name for trace in request.recording.timing_runs for k in trace.kernels}
        return "".join(f"{name}\\n" for name in sorted(names)).encode()


def rules():
    def rule(id, quantity, comparison, threshold, label):
        condition = Condition(quantity, comparison, threshold, "chosen")
        return Rule(id, label, 1000, (condition,), f"{id} holds.")

    return (
        rule("cold-l2", "l2_hit_rate", Comparison.BELOW, 0.9, "stranger:cold_l2"),
        rule("unheard-of", "phase_of_the_moon", Comparison.AT_LEAST, 0.5, "stranger:moon"),
    )
"""


@pytest.fixture
def stranger(site):
    modules = {"plugin": PLUGIN, "parts": PARTS}
    site.install("rpl-stranger", modules, {"rpl.plugins": {"stranger": "rpl_stranger.plugin"}})
    return site


@pytest.mark.data
def test_a_rule_on_a_counter_quantity_gives_its_own_label(stranger, rpl_shared_data, tmp_path, rpl_cli):
    recording = rpl_shared_data / "counters_gfx942" / "path_MI300X_A1"
    plain = tmp_path / "plain"
    rpl_cli("analyze", "--device", "gfx942", recording, "-o", plain).assert_ok()
    stranger.rpl("analyze", "--device", "gfx942", recording, "-o", tmp_path / "out").assert_ok()
    before = json.loads((plain / "analysis.json").read_text())["kernels"][0]
    after = json.loads((tmp_path / "out" / "analysis.json").read_text())["kernels"][0]

    assert after["bottleneck"] == "stranger:cold_l2"
    tested = next(rule for rule in after["evidence"] if rule["rule"] == "cold-l2")["conditions"][0]
    assert tested["holds"] is True
    caches = json.loads((plain / "roofline.json").read_text())["kernels"][0]["caches"]
    assert tested["value"] == caches["l2_hit_rate"]["value"]
    assert tested["formula"] == caches["l2_hit_rate"]["formula"]
    assert [u for u in after["unknown"] if u.startswith("phase_of_the_moon: no analyzer gives")]
    own = [rule["rule"] for rule in after["evidence"] if rule["rule"] != "cold-l2"]
    assert own == [rule["rule"] for rule in before["evidence"]]


def test_a_rule_without_its_figure_changes_no_confidence(stranger, rpl_make_rocpd, tmp_path, rpl_cli):
    recording = rpl_make_rocpd([("kernel", 0, 1000), ("kernel", 2000, 3000)])
    rpl_cli("analyze", recording, "-o", tmp_path / "plain").assert_ok()
    stranger.rpl("analyze", recording, "-o", tmp_path / "out").assert_ok()
    before, after = (
        json.loads((tmp_path / name / "analysis.json").read_text())["kernels"][0] for name in ("plain", "out")
    )
    assert (after["bottleneck"], after["confidence"], after["reason"]) == (
        before["bottleneck"],
        before["confidence"],
        before["reason"],
    )
    assert any(text.startswith("l2_hit_rate: ") for text in after["unknown"])


def test_facts_sections_options_and_exports_reach_people(stranger, rpl_make_rocpd, tmp_path):
    recording = rpl_make_rocpd([("kernel_a", 0, 1000), ("kernel_b", 2000, 3000), ("kernel_b", 3000, 4000)])
    run = tmp_path / "out"
    done = stranger.rpl("analyze", recording, "--least-launches", "2", "-o", run).assert_ok()
    assert "1 kernel with at least 2 launch" in done.stdout
    assert json.loads((run / "profile.json").read_text())["sections"] == {
        "launches_by_stranger": {"kernels": 1, "least": 2}
    }
    assert json.loads((run / "analysis.json").read_text())["extensions"] == {
        "launch_summary": {"kernels": 1, "least": 2}
    }
    page = stranger.rpl("report", run, "--format", "html").assert_ok().stdout
    assert "Launches &lt;counted&gt;" in page
    assert "1 kernel with at least 2 launch" in page
    assert (
        "the stranger says of kernel_: launched" in stranger.rpl("explain", "--run", run).assert_ok().stdout
    )
    assert (
        stranger.rpl("export", recording, "--format", "launch-list").assert_ok().stdout
        == "kernel_a\nkernel_b\n"
    )
    (tmp_path / "k.hip").write_text("__global__ void kernel_b(float* out) {\n  out[0] = 1.0f;\n}\n")
    prompt = stranger.rpl("prompt", tmp_path / "k.hip", "--from", run).assert_ok().stdout
    assert "Plugin `stranger`, `Launches <counted>`:\n\n```\nthe stranger says of kernel_: launched" in prompt
    schema = stranger.rpl("schema", "profile").assert_ok().json()
    assert "launches_by_stranger" in schema["properties"]["sections"]["properties"]
    assert "--least-launches N" in stranger.rpl("analyze", "--help").assert_ok().stdout
    wrong = stranger.rpl("analyze", recording, "--least-launches", "0").assert_exit(64)
    assert "--least-launches" in wrong.stderr


def test_without_the_stranger_nothing_of_it_is_left(site, rpl_make_rocpd, tmp_path):
    (tmp_path / "site").mkdir()
    recording = rpl_make_rocpd([("kernel", 0, 1000)])
    site.rpl("analyze", recording, "--least-launches", "2").assert_exit(64)
    site.rpl("analyze", recording, "-o", tmp_path / "out").assert_ok()
    assert json.loads((tmp_path / "out" / "profile.json").read_text())["sections"] == {}
