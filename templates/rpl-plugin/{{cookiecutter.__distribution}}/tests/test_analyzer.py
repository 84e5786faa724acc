"""The plugin is installed, keeps rpl's contracts, and its figure reaches documents and reports."""

from __future__ import annotations

import pytest
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.model.recording import Recording
from rpl_testkit.contracts import assert_analyzer
from rpl_testkit.traces import make_trace

from {{ cookiecutter.__module }}.longest import FIELD, LONGEST, LongestAnalyzer

NAME = "{{ cookiecutter.plugin_name }}"
TRACE = make_trace([("copy", 0, 10), ("gemm", 20, 50), ("gemm", 60, 100)])
CONTEXT = AnalysisContext(Recording(traces=(TRACE,)), device=None)


def test_the_plugin_loads_and_offers_its_parts(rpl_host):
    catalog = rpl_host(NAME).catalog
    assert NAME in catalog.analyzers().names
    assert NAME in catalog.report_sections().names


def test_the_analyzer_keeps_the_contract():
    assert_analyzer(LongestAnalyzer(), CONTEXT)


def test_the_longest_launch_of_each_kernel():
    figures = LongestAnalyzer().analyze(CONTEXT).facts[LONGEST]
    assert {name: figure.value for name, figure in figures.items()} == {"copy": 10.0, "gemm": 40.0}


@pytest.fixture
def run(rpl_make_rocpd, rpl_cli, tmp_path):
    recording = rpl_make_rocpd([("copy", 1_000, 3_000), ("gemm", 4_000, 9_000)])
    rpl_cli("analyze", recording, "-o", tmp_path / "run").assert_ok()
    return tmp_path / "run"


def test_profile_json_has_its_section(run, rpl_cli):
    bundle = rpl_cli("report", run, "--format", "json").assert_ok().json()
    assert bundle["profile"]["sections"][FIELD] == {"longest_ns": {"copy": 2000.0, "gemm": 5000.0}}


def test_the_report_shows_it(run, rpl_cli):
    assert "Longest launches" in rpl_cli("report", run).assert_ok().stdout
    assert "its longest launch took 5,000 ns" in rpl_cli("explain", "gemm", "--run", run).assert_ok().stdout
