"""Installed from wheels into a fresh environment, as users do it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from .conftest import PACKAGES, PROJECTS, build_wheels

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
    assert {"core", "gfx942", "rocprofv3", "analysis", "report"} <= statuses.keys()
    assert set(statuses.values()) == {"loaded"}


def test_a_device_and_the_replayer_install_together(wheelhouse, fresh_environment):
    """Without rpl-native it imports, lists, helps, and says what to do."""
    fresh = fresh_environment
    fresh.install("rpl-gfx942", "rpl-vmreplay", wheels=[wheelhouse])
    for command in ("reserve-check", "full-vm", "compare"):
        assert f"  {command} " in fresh.output("rpl", "replay", "--help")
    statuses = {name: plugin["status"] for name, plugin in fresh.plugins().items()}
    assert {"gfx942", "vmreplay", "vmreplay-optimizer"} <= statuses.keys()
    assert set(statuses.values()) == {"loaded"}
    capture = PACKAGES["rpl_core"].parent / "examples" / "captures" / "attention_values"
    for command in ("reserve-check", "full-vm"):
        done = fresh.run("rpl", "replay", command, capture, "--json")
        assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (69, "missing")
        assert "rpl-native is absent. Next: pip install rpl-native" in done.stderr


def test_demo_works_from_wheels(wheelhouse, fresh_environment):
    fresh_environment.install("rocm-perf-lab", wheels=[wheelhouse])
    shown = fresh_environment.output("rpl", "demo", "--recorded", "-o", "demo", "--runs", "1")
    assert "SYNTHETIC" in shown
    assert "memory_bandwidth_bound" in shown


def test_core_alone_names_the_next_command(wheelhouse, fresh_environment, rpl_make_rocpd):
    fresh_environment.install("rpl-core", wheels=[wheelhouse])
    done = fresh_environment.run("rpl", "profile", "--device", "gfx942", "--", "true")
    assert done.returncode == 69
    assert "pip install rocm-perf-lab" in done.stderr
    recorded = fresh_environment.run("rpl", "analyze", rpl_make_rocpd([("kernel", 0, 1000)]))
    assert recorded.returncode == 69
    assert "pip install rocm-perf-lab" in recorded.stderr
    assert fresh_environment.run("rpl", "doctor").returncode in (0, 69)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_distribution_installs_alone_with_what_it_needs(wheelhouse, fresh_environment, package):
    fresh_environment.install(package.replace("_", "-"), wheels=[wheelhouse])
    assert "No broken requirements" in fresh_environment.pip("check")
    fresh_environment.output("python", "-c", f"import {package}")
    assert {p["status"] for p in fresh_environment.plugins().values()} == {"loaded"}
    fresh_environment.output("rpl", "--help")


#: What a stranger writes against each distribution; mypy finds the types in the wheels alone.
STRANGER = """
from pathlib import Path

from rpl_amdgpu.models import Family
from rpl_analysis.facts import KERNEL_TIMES
from rpl_att.options import DEEP_TOP
from rpl_autotune.interfaces import Strategy
from rpl_codeobject.kernel_code import KERNEL_CODE
from rpl_measure.rank_tests import holm_adjusted
from rpl_core import hookimpl
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.interfaces.analyzer import KernelFigure
from rpl_core.model.metric import Metric
from rpl_emu.rocpd_file import amd_counters
from rpl_gfx1030.products import FAMILIES
from rpl_gfx1100.plugin import rpl_device_models
from rpl_gfx90a.products import GFX90A
from rpl_gfx942.products import GFX942
from rpl_gfx950.products import GFX950
from rpl_transforms.unroll import Unroll
from rpl_optimize.transform import apply_edits
from rpl_pcsampling.samples import PC_SAMPLES
from rpl_report.text import TextRenderer
from rpl_rocprofv3.plugin import rpl_readers
from rpl_testkit.contracts import assert_analyzer
from rpl_testkit.traces import make_trace
from rpl_transforms.plugin import rpl_transformations
from rpl_vmreplay.cli.capture import capture

RPL_API = 2
SLOWEST: KernelFigure = KernelFigure("slowest_ms")


class Slowest(Analyzer):
    name, summary = "slowest", "The longest launch of each kernel."
    requires = frozenset({KERNEL_TIMES})
    wants = frozenset({KERNEL_CODE})
    provides = frozenset({SLOWEST})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        times = context.facts[KERNEL_TIMES]
        top: int = context.options[DEEP_TOP]
        found: dict[str, Metric] = {}
        reveal_type(times)
        return AnalysisOutcome({SLOWEST: {name: found[name] for name in list(times)[:top] if name in found}})


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    return (Slowest(),)
"""


def _public_imports():
    """Every name that plugins may import, in modules of distributions that are no tests."""
    snapshot = json.loads((PACKAGES["rpl_core"].parent / "docs" / "plugin-api-modules.json").read_text())
    for number, (module, names) in enumerate(sorted(snapshot.items())):
        for name in names:
            yield f"from {module} import {name} as _{number}_{name}\n"


def test_a_stranger_sees_the_types_of_every_distribution(wheelhouse, fresh_environment, tmp_path):
    names = [package.replace("_", "-") for package in PACKAGES]
    fresh_environment.install(*names, "mypy", wheels=[wheelhouse])
    module = tmp_path / "stranger.py"
    module.write_text(STRANGER)
    others = [package for package in PACKAGES if f"from {package}" not in STRANGER]
    with module.open("a") as more:
        more.writelines(f"import {package}  # noqa: E402\n" for package in others)
        more.writelines(_public_imports())
    found = fresh_environment.output("python", "-m", "mypy", "--strict", module)
    assert "rpl_analysis.runtime.timing.KernelTime" in found
    assert "Success" in found


def test_one_command_upgrades_everything(wheelhouse, fresh_environment, tmp_path):
    """From this version to the next one, which a copy of the checkout states in its one place."""
    root = PACKAGES["rpl_core"].parent
    copy, newer = tmp_path / "copy", tmp_path / "newer"
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (root / name).is_file() and not name.startswith(("tests/", "benchmarks/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, copy / name)
    tool = [sys.executable, str(copy / "tools" / "write_metadata.py"), "--version", "9.8.7"]
    subprocess.run(tool, check=True, capture_output=True)
    build_wheels(copy, newer)
    fresh = fresh_environment
    fresh.install("rocm-perf-lab", wheels=[wheelhouse])
    before = fresh.output("rpl", "--version").split()[-1]
    fresh.install("--upgrade", "rocm-perf-lab", wheels=[wheelhouse, newer])
    assert before != "9.8.7"
    assert fresh.output("rpl", "--version").split()[-1] == "9.8.7"
    listed = json.loads(fresh.pip("list", "--format=json"))
    own = {row["name"]: row["version"] for row in listed if row["name"].startswith(("rpl-", "rpl_", "rocm"))}
    assert len(own) >= len(PROJECTS) - 2  # all but the test kit and what agents need
    assert set(own.values()) == {"9.8.7"}
    assert "No broken requirements" in fresh.pip("check")
