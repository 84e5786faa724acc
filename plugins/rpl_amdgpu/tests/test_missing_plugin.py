"""The GPU of this machine, or of a recording, that no installed plugin knows: the package is named."""

from __future__ import annotations

import attrs
import pytest

from rpl_amdgpu import detection
from rpl_amdgpu.detection import (
    DEVICE_PACKAGE,
    DevicePackageAnalyzer,
    DevicePluginCheck,
    architectures_here,
    known_architectures,
)
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.interfaces.doctor import DoctorStatus
from rpl_core.model.recording import Recording
from rpl_testkit.contracts import assert_doctor_check
from rpl_testkit.traces import make_trace


@pytest.fixture
def topology(tmp_path):
    """``topology(0, 90500)``: nodes as the driver lists them; 0 is a processor."""

    def write(*versions):
        for number, version in enumerate(versions):
            node = tmp_path / str(number)
            node.mkdir()
            (node / "properties").write_text(f"cpu_cores_count 0\ngfx_target_version {version}\n")
        return tmp_path

    return write


@pytest.fixture
def providers(monkeypatch):
    """Packages that could be installed: that of gfx950."""
    monkeypatch.setattr(
        detection, "missing_provider", lambda _, name: "rpl-gfx950" if name == "gfx950" else None
    )


def test_architectures_are_read_from_the_driver(topology, tmp_path):
    assert architectures_here(topology(0, 90402, 90010, 90402, 110501)) == ["gfx942", "gfx90a", "gfx1151"]
    assert architectures_here(tmp_path / "absent") == []


def test_a_known_gpu_is_fine(topology):
    check = DevicePluginCheck(known_architectures, topology(0, 90402, 90010))
    report = check.check()
    assert report.status is DoctorStatus.OK
    assert "gfx942, gfx90a" in report.fact
    assert_doctor_check(check)


def test_the_package_of_an_unknown_gpu_is_named(topology, providers):
    report = DevicePluginCheck(lambda: frozenset({"gfx942"}), topology(0, 90402, 90500)).check()
    assert (report.status, report.remedy) == (DoctorStatus.MISSING, "pip install rpl-gfx950")
    assert "gfx950" in report.fact
    assert "gfx942" not in report.fact


def test_a_gpu_that_no_package_knows_leads_to_the_guide(tmp_path, providers):
    node = tmp_path / "0"
    node.mkdir()
    (node / "properties").write_text("gfx_target_version 125000\n")
    report = DevicePluginCheck(frozenset, tmp_path).check()
    assert (report.status, report.remedy) == (DoctorStatus.MISSING, "write one: `rpl docs plugins/device`")


def _context(architecture, device=None):
    trace = make_trace([("k", 0, 100)])
    agents = tuple(attrs.evolve(agent, architecture=architecture) for agent in trace.agents)
    return AnalysisContext(Recording((attrs.evolve(trace, agents=agents),)), device)


def test_a_recording_of_an_unknown_device_names_the_package(providers):
    outcome = DevicePackageAnalyzer().analyze(_context("gfx950:sramecc+"))
    assert outcome.facts[DEVICE_PACKAGE] == "rpl-gfx950"
    (said,) = outcome.diagnostics
    assert (said.code, said.remedy) == ("device.plugin_missing", "pip install rpl-gfx950")


def test_a_recording_that_nobody_could_know_names_none(providers):
    outcome = DevicePackageAnalyzer().analyze(_context("gfx1250"))
    assert (outcome.facts[DEVICE_PACKAGE], outcome.diagnostics) == (None, ())
