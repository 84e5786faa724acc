"""Strangers' plugins as users get them: wheels in a fresh environment, without a checkout of the core."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAXPY = ROOT / "examples" / "rpl-transform-launch-bounds" / "tests" / "sources" / "saxpy.hip"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_example_plugins_work_as_wheels(wheelhouse, build_wheel, fresh_environment):
    fresh = fresh_environment
    names = ("rpl-measured-ceilings", "rpl-transform-launch-bounds", "rpl-strategy-annealing", "rpl-sm90")
    examples = [ROOT / "examples" / name for name in names]
    built = [build_wheel(example) for example in examples]
    fresh.install(*(f"{name}[test]" for name in names), wheels=[wheelhouse, *built])

    plugins = fresh.plugins()
    for name in ("measured-ceilings", "launch-bounds", "annealing"):
        assert plugins[name]["status"] == "loaded", plugins[name]
        assert plugins[name]["origin"] == "installed"
    assert plugins["measured-ceilings"]["hooks"] == ["rpl_ceilings"]

    listed = json.loads(fresh.output("rpl", "transform", SAXPY, "--json"))["candidates"]
    assert {c["id"]: c["allowed"] for c in listed}["launch-bounds:saxpy-256"] is True
    changed = fresh.output("rpl", "transform", SAXPY, "--apply", "launch-bounds:saxpy-256")
    assert "void __launch_bounds__(256) saxpy(" in changed

    for example in examples:
        fresh.output("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=example)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_another_vendor_needs_no_package_for_amd(wheelhouse, build_wheel, fresh_environment):
    """Kernels of an H100 in an environment that holds the analyses, the reports and the example."""
    fresh, example = fresh_environment, ROOT / "examples" / "rpl-sm90"
    fresh.install("rpl-sm90", "rpl-analysis", "rpl-report", wheels=[wheelhouse, build_wheel(example)])
    installed = {row["name"] for row in json.loads(fresh.pip("list", "--format=json"))}
    own = {name.replace("_", "-") for name in installed if name.startswith(("rpl", "rocm"))}
    assert own == {"rpl-core", "rpl-codeobject", "rpl-analysis", "rpl-report", "rpl-sm90"}
    assert fresh.plugins().keys() == {"core", "codeobject", "analysis", "report", "sm90", "sm90-optimizer"}
    write = "import sys; from nsight_writer import program; program().write(sys.argv[1])"
    export = fresh.folder / "report.sqlite"
    fresh.output("python", "-c", write, export, cwd=example / "tests")
    text = fresh.output("rpl", "analyze", export, "-o", "run")
    assert "NVIDIA H100 SXM" in text
    assert "critical path  8.1 us of 9.4 us makespan" in text
    dag = json.loads((fresh.folder / "run" / "dag.json").read_text())
    assert {("event", "certain"), ("host_sync", "certain")} <= {
        (e["kind"], e["confidence"]) for e in dag["edges"]
    }
    assert "gemm(half*)" in fresh.output("rpl", "report", "run", "--format", "html")
    assert "1.306x" in fresh.output("rpl", "what-if", "gemm=2", "--run", export)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "hooks", "passed"),
    [
        ("check", ["rpl_doctor_checks"], 6),
        ("device", ["rpl_detect_device", "rpl_device_models"], 7),
        ("reader", ["rpl_readers"], 8),
        ("analyzer", ["rpl_analyzers", "rpl_documents", "rpl_report_sections"], 5),
        ("transformation", ["rpl_transformations"], 4),
    ],
)
def test_a_baked_plugin_works_as_a_wheel_and_passes_its_own_tests(
    kind, hooks, passed, tmp_path, wheelhouse, build_wheel, fresh_environment
):
    from cookiecutter.main import cookiecutter

    baked = Path(
        cookiecutter(
            str(ROOT / "templates" / "rpl-plugin"),
            no_input=True,
            output_dir=str(tmp_path),
            extra_context={"plugin_name": "two-words", "kind": kind},
        )
    )
    fresh = fresh_environment
    fresh.install("rpl-two-words[test]", wheels=[wheelhouse, build_wheel(baked)])
    plugin = fresh.plugins()["two-words"]
    assert (plugin["status"], plugin["distribution"]) == ("loaded", "rpl-two-words")
    assert plugin["hooks"] == hooks
    summary = fresh.output("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=baked)
    assert f"{passed} passed" in summary
