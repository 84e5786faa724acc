"""Distributions of strangers, installed as pip installs a wheel: a package and its metadata on the path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Site:
    """A folder like ``site-packages`` that only the commands of one test see."""

    def __init__(self, folder: Path, run) -> None:
        self._folder = folder
        self._run = run

    def install(
        self, distribution: str, modules: dict[str, str], entry_points: dict[str, dict[str, str]]
    ) -> None:
        package = self._folder / distribution.replace("-", "_")
        package.mkdir(parents=True)
        for name, source in {"__init__": "", **modules}.items():
            (package / f"{name}.py").write_text(source)
        info = self._folder / f"{package.name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        groups = [
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
            for group, entries in entry_points.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(groups))

    def rpl(self, *words: str | Path):
        return self._run.process(*words, env={"PYTHONPATH": str(self._folder), "PATH": os.environ["PATH"]})


@pytest.fixture
def site(tmp_path, rpl_cli) -> Site:
    return Site(tmp_path / "site", rpl_cli)
