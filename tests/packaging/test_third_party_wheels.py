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
    names = ("rpl-measured-ceilings", "rpl-transform-launch-bounds", "rpl-strategy-annealing")
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
@pytest.mark.parametrize(
    ("kind", "hooks", "passed"),
    [("check", ["rpl_doctor_checks"], 6), ("device", ["rpl_detect_device", "rpl_device_models"], 7)],
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
