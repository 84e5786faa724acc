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
    examples = [ROOT / "examples" / "rpl-gfx90a", ROOT / "examples" / "rpl-transform-launch-bounds"]
    built = [build_wheel(example) for example in examples]
    fresh.install("rpl-gfx90a[test]", "rpl-transform-launch-bounds[test]", wheels=[wheelhouse, *built])

    plugins = fresh.plugins()
    for name in ("gfx90a", "launch-bounds"):
        assert plugins[name]["status"] == "loaded", plugins[name]
        assert plugins[name]["origin"] == "installed"
    device = json.loads(fresh.output("rpl", "plugins", "info", "gfx90a", "--json"))["plugins"][0]
    assert {"MI210", "MI250X"} <= {c["name"].upper() for c in device["contributions"]}

    listed = json.loads(fresh.output("rpl", "transform", SAXPY, "--json"))["candidates"]
    assert {c["id"]: c["allowed"] for c in listed}["launch-bounds:saxpy-256"] is True
    changed = fresh.output("rpl", "transform", SAXPY, "--apply", "launch-bounds:saxpy-256")
    assert "void __launch_bounds__(256) saxpy(" in changed

    for example in examples:
        fresh.output("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=example)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_baked_plugin_works_as_a_wheel_and_passes_its_own_tests(
    tmp_path, wheelhouse, build_wheel, fresh_environment
):
    from cookiecutter.main import cookiecutter

    baked = Path(
        cookiecutter(
            str(ROOT / "templates" / "rpl-plugin"),
            no_input=True,
            output_dir=str(tmp_path),
            extra_context={"plugin_name": "two-words"},
        )
    )
    fresh = fresh_environment
    fresh.install("rpl-two-words[test]", wheels=[wheelhouse, build_wheel(baked)])
    plugin = fresh.plugins()["two-words"]
    assert (plugin["status"], plugin["distribution"]) == ("loaded", "rpl-two-words")
    assert plugin["hooks"] == ["rpl_doctor_checks"]
    summary = fresh.output("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=baked)
    assert "6 passed" in summary
