"""A stranger's analyzer, collector or renderer that breaks costs its own contribution and nothing else."""

from __future__ import annotations

import json

import pytest

ANALYZER = """
from rpl_core import hookimpl
from rpl_analysis.facts import KERNEL_TIMES
from rpl_core.interfaces.analyzer import AnalysisOutcome, Analyzer
from rpl_core.interfaces.analyzer import Fact

RPL_API = 2

MINE = Fact("mine", published=True)

class Mine(Analyzer):
    name, summary = "mine", "A stranger's analysis."
    requires, provides = frozenset({{KERNEL_TIMES}}), frozenset({{MINE}})
    def analyze(self, context):
        print("chatter")
        return AnalysisOutcome({{MINE: {fact}}})

@hookimpl
def rpl_analyzers():
    return (Mine(),)
"""

COLLECTOR = """
from rpl_core import hookimpl
from rpl_core.interfaces.collector import CollectionPlan, Collector, PlannedPass
from rpl_core.model.trace import TraceRole

RPL_API = 2

class Mine(Collector):
    name, summary = "mine", "A stranger's collector."
    def missing(self):
        return None
    def plan(self, request):
        {plan}
        return CollectionPlan((PlannedPass("run_1", TraceRole.TIMING, "passes/run_1", ("x",)),))
    def run(self, planned, run_directory, log):
        {run}

@hookimpl
def rpl_collectors():
    return (Mine(),)
"""

RENDERER = """
from rpl_core import hookimpl
from rpl_core.interfaces.section import Renderer

RPL_API = 2

class Mine(Renderer):
    name, summary, suffix = "mine", "A stranger's form.", ".mine"
    def render(self, request):
        raise ZeroDivisionError("bad luck")

@hookimpl
def rpl_renderers():
    return (Mine(),)
"""


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """``stranger(source)``: a plugin module under development, to be used with ``-p stranger_plugin``."""
    import sys

    monkeypatch.syspath_prepend(tmp_path)

    def write(source):
        (tmp_path / "stranger_plugin.py").write_text(source)
        monkeypatch.delitem(sys.modules, "stranger_plugin", raising=False)

    yield write
    sys.modules.pop("stranger_plugin", None)


@pytest.fixture
def recording(rpl_make_rocpd):
    return rpl_make_rocpd([("kernel", 0, 1000)])


def test_fact_of_a_stranger_appears_under_extensions(stranger, recording, rpl_cli, tmp_path):
    stranger(ANALYZER.format(fact='{"b": (1, 2), "a": None}'))
    outcome = rpl_cli("-p", "stranger_plugin", "analyze", "--json", recording, "-o", tmp_path / "out")
    outcome.assert_ok().json()
    analysis = json.loads((tmp_path / "out" / "analysis.json").read_text())
    assert analysis["extensions"] == {"mine": {"a": None, "b": [1, 2]}}
    assert "chatter" in outcome.stderr


@pytest.mark.parametrize(
    "fact",
    ["object()", "float('nan')", "{1, 2}", "'\\udcff'", "1 / 0", "(_ for _ in ()).throw(SystemExit(3))"],
)
def test_fact_that_is_no_json_costs_only_itself(stranger, recording, rpl_cli, tmp_path, fact):
    stranger(ANALYZER.format(fact=fact))
    outcome = rpl_cli("-p", "stranger_plugin", "analyze", "--json", recording, "-o", tmp_path / "out")
    assert outcome.assert_ok().json()["runtime_ms"] == 0.001
    assert "stranger_plugin" in outcome.stderr
    assert json.loads((tmp_path / "out" / "analysis.json").read_text())["extensions"] == {}


def test_traceback_of_an_analyzer_is_one_switch_away(stranger, recording, rpl_cli):
    stranger(ANALYZER.format(fact="1 / 0"))
    outcome = rpl_cli("-p", "stranger_plugin", "analyze", recording, env={"RPL_TRACEBACK": "1"})
    assert outcome.exit_code == 0
    assert "ZeroDivisionError" in outcome.stderr
    assert "Traceback" in outcome.stderr


@pytest.mark.parametrize("where", ["plan", "run"])
@pytest.mark.parametrize("what", ["1 / 0", "raise SystemExit(0)"])
def test_collector_that_breaks_is_named_and_the_run_says_incomplete(
    stranger, rpl_cli, tmp_path, monkeypatch, where, what
):
    stranger(COLLECTOR.format(**{"plan": "pass", "run": "pass", where: what}))
    monkeypatch.chdir(tmp_path)
    outcome = rpl_cli(
        "-p", "stranger_plugin", "profile", "--collector", "mine", "-o", "out", "true"
    ).assert_exit(70)
    assert "stranger_plugin" in outcome.stderr
    if where == "run":
        manifest = json.loads((tmp_path / "out" / "run.json").read_text())
        assert manifest["state"] == "incomplete"
        assert manifest["passes"][0]["state"] == "failed"
    else:
        assert not (tmp_path / "out").exists()


def test_unknown_collector_names_the_known_ones(rpl_cli):
    outcome = rpl_cli("profile", "--collector", "nope", "true").assert_exit(69)
    assert "timing-only" in outcome.stderr


def test_renderer_that_breaks_is_named(stranger, recording, rpl_cli, tmp_path):
    rpl_cli("analyze", recording, "-o", tmp_path / "out").assert_ok()
    stranger(RENDERER)
    outcome = rpl_cli("-p", "stranger_plugin", "report", "--format", "mine", tmp_path / "out")
    outcome.assert_exit(70)
    assert "stranger_plugin" in outcome.stderr
    assert "bad luck" in outcome.stderr
