"""Installed from wheels into a fresh environment, as users do it."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def test_device_plugin_alone_profiles_a_recording(wheelhouse, fresh_environment, rpl_shared_data):
    fresh_environment.install("rpl-gfx942", wheels=[wheelhouse])
    recording = rpl_shared_data / "counters_gfx942" / "vcopy_MI300X_A1_rocpd"
    shown = fresh_environment.output(
        "rpl", "profile", "--device", "gfx942", "--from", recording, "-o", "out", "--json"
    )
    document = json.loads(shown)
    assert document["gpu"]["architecture"] == "gfx942"
    assert document["roofline"]["bytes"] == pytest.approx(16_777_216, rel=0.002)
    assert document["roofline"]["flops"] == 0
    written = {path.name for path in (fresh_environment.folder / "out").iterdir()}
    assert {"profile.json", "roofline.json", "dag.json", "analysis.json"} <= written
    for name in ("rocm-perf", "rocm-perf-lab"):
        assert fresh_environment.output(name, "--version") == fresh_environment.output("rpl", "--version")
    statuses = {name: plugin["status"] for name, plugin in fresh_environment.plugins().items()}
    assert statuses == {"core": "loaded", "gfx942": "loaded", "rocprofv3": "loaded"}


def test_demo_works_from_wheels(wheelhouse, fresh_environment):
    fresh_environment.install("rocm-perf-lab", wheels=[wheelhouse])
    shown = fresh_environment.output("rpl", "demo", "-o", "demo", "--runs", "1")
    assert "SYNTHETIC" in shown
    assert "memory_bandwidth_bound" in shown


def test_core_alone_names_the_next_command(wheelhouse, fresh_environment, rpl_make_rocpd):
    fresh_environment.install("rpl-core", wheels=[wheelhouse])
    done = fresh_environment.run("rpl", "profile", "--device", "gfx942", "--", "true")
    assert done.returncode == 69
    assert "pip install rpl-gfx942" in done.stderr
    recorded = fresh_environment.run("rpl", "analyze", rpl_make_rocpd([("kernel", 0, 1000)]))
    assert recorded.returncode == 69
    assert "pip install rpl-rocprofv3" in recorded.stderr
    assert fresh_environment.run("rpl", "doctor").returncode in (0, 69)
