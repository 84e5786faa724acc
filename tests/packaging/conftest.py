"""Wheels of this checkout and fresh environments to install them in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Every distribution of the checkout that is not compiled.
PROJECTS = (
    ROOT,
    *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
    ROOT / "metapackage",
)
#: Name of the package -> folder of its sources.
PACKAGES = {
    "rpl_core": ROOT / "rpl_core",
    **{path.name: path for path in sorted(ROOT.glob("plugins/*/src/*")) if path.is_dir()},
    "rocm_perf_lab": ROOT / "metapackage" / "src" / "rocm_perf_lab",
}
_INHERITED = {"PATH", "HOME", "LANG", "TMPDIR", "CI"}


@attrs.frozen
class FreshEnvironment:
    """A virtual environment that knows nothing but what the test installs."""

    folder: Path

    def run(
        self, program: str, *words: str | Path, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment outside of the checkout, with further ``variables``."""
        inherited = {k: v for k, v in os.environ.items() if k in _INHERITED or k.startswith("PIP_")}
        return subprocess.run(
            [str(self.folder / "bin" / program), *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.folder,
            env={**inherited, **variables},
        )

    def output(self, program: str, *words: str | Path, cwd: Path | None = None, **variables: str) -> str:
        """As ``run``; the program must succeed."""
        done = self.run(program, *words, cwd=cwd, **variables)
        assert done.returncode == 0, f"{program} {words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def install(self, *names: str, wheels: Sequence[Path]) -> None:
        """Install from the folders ``wheels``, and what these need from the package index."""
        places = [word for folder in wheels for word in ("--find-links", str(folder))]
        # What a test imports is compiled when it is imported: little of all that comes along.
        self.pip("install", "-q", "--no-compile", *places, *names)

    def pip(self, *words: str) -> str:
        """What the development environment's pip says of this one, which spares it a pip of its own."""
        command = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"pip {words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def plugins(self) -> dict[str, dict[str, Any]]:
        """What ``rpl plugins list`` says, by name."""
        rows = json.loads(self.output("rpl", "plugins", "list", "--json"))["plugins"]
        return {row["name"]: row for row in rows}


def build(kind: str, project: Path, target: Path, *settings: str) -> None:
    """Build a "wheel" or "sdist" with the tools of the development environment."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "-o", str(target), str(project)]
    command += [f"-C{setting}" for setting in settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def build_wheels(root: Path, folder: Path) -> None:
    """One per distribution of a checkout; that of rpl-native is without its parts, which take minutes."""
    for project in PROJECTS:
        build("wheel", root / project.relative_to(ROOT), folder)
    build("wheel", root / "native", folder, "wheel.cmake=false")


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    build_wheels(ROOT, folder)
    return folder


@pytest.fixture(scope="session")
def sdists(tmp_path_factory):
    """A folder with one source distribution per distribution of the checkout."""
    folder = tmp_path_factory.mktemp("sdists")
    for project in PROJECTS:
        build("sdist", project, folder)
    return folder


@pytest.fixture
def fresh_environment(tmp_path):
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    return FreshEnvironment(folder)


@pytest.fixture
def build_wheel(tmp_path):
    """``build_wheel(project)``: the folder with the wheel of another project."""

    def make(project: Path) -> Path:
        build("wheel", project, tmp_path / "built")
        return tmp_path / "built"

    return make
