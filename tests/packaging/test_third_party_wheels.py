"""Strangers' plugins as users get them: wheels in a fresh environment, without a checkout of the core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]
SAXPY = ROOT / "examples" / "rpl-transform-launch-bounds" / "tests" / "sources" / "saxpy.hip"


@attrs.frozen
class FreshEnvironment:
    """A virtual environment that knows nothing but what the test installs."""

    folder: Path

    def call(self, *command: str | Path, cwd: Path | None = None) -> str:
        """Run a program of the environment outside the checkout; returns its stdout."""
        program, *arguments = map(str, command)
        inherited = {"PATH", "HOME", "LANG", "TMPDIR", "CI"}
        variables = {k: v for k, v in os.environ.items() if k in inherited or k.startswith("PIP_")}
        done = subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.folder,
            env=variables,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def install(self, wheels: Path, *names: str) -> None:
        self.call("python", "-m", "pip", "install", "-q", "--find-links", wheels, *names)

    def plugins(self) -> dict[str, dict[str, object]]:
        rows = json.loads(self.call("rpl", "plugins", "list", "--json"))["plugins"]
        return {row["name"]: row for row in rows}


def build_wheels(wheels: Path, *projects: Path) -> None:
    """One wheel per project folder, built by the tools of the development environment."""
    for project in projects:
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "-w", str(wheels), str(project)], check=True, capture_output=True)


@pytest.fixture
def fresh(tmp_path):
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True, symlinks=True)
    return FreshEnvironment(folder)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_example_plugins_work_as_wheels(tmp_path, fresh):
    wheels = tmp_path / "wheels"
    examples = [ROOT / "examples" / "rpl-gfx90a", ROOT / "examples" / "rpl-transform-launch-bounds"]
    build_wheels(wheels, ROOT, ROOT / "plugins" / "rpl_rocprofv3", *examples)
    fresh.install(wheels, "rpl-gfx90a[test]", "rpl-transform-launch-bounds[test]")

    plugins = fresh.plugins()
    for name in ("gfx90a", "launch-bounds"):
        assert plugins[name]["status"] == "loaded", plugins[name]
        assert plugins[name]["origin"] == "installed"
    device = json.loads(fresh.call("rpl", "plugins", "info", "gfx90a", "--json"))["plugins"][0]
    assert {"MI210", "MI250X"} <= {c["name"].upper() for c in device["contributions"]}

    listed = json.loads(fresh.call("rpl", "transform", SAXPY, "--json"))["candidates"]
    assert {c["id"]: c["allowed"] for c in listed}["launch-bounds:saxpy-256"] is True
    changed = fresh.call("rpl", "transform", SAXPY, "--apply", "launch-bounds:saxpy-256")
    assert "void __launch_bounds__(256) saxpy(" in changed

    for example in examples:
        fresh.call("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=example)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_baked_plugin_works_as_a_wheel_and_passes_its_own_tests(tmp_path, fresh):
    from cookiecutter.main import cookiecutter

    baked = Path(
        cookiecutter(
            str(ROOT / "templates" / "rpl-plugin"),
            no_input=True,
            output_dir=str(tmp_path),
            extra_context={"plugin_name": "two-words"},
        )
    )
    wheels = tmp_path / "wheels"
    build_wheels(wheels, ROOT, baked)
    fresh.install(wheels, "rpl-two-words[test]")
    plugin = fresh.plugins()["two-words"]
    assert (plugin["status"], plugin["distribution"]) == ("loaded", "rpl-two-words")
    assert plugin["hooks"] == ["rpl_doctor_checks"]
    summary = fresh.call("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=baked)
    assert "6 passed" in summary
