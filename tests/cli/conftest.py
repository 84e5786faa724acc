"""An application to profile, in a folder of its own that commands run in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SCRIPT = '#!/bin/sh\nprintf "%s\\n" "$@" > arguments\necho "application output"\n'


@pytest.fixture(autouse=True)
def these_plugins_only(monkeypatch):
    """Whatever else is installed beside the checkout must not change what the tests see."""
    monkeypatch.setenv(
        "RPL_LOAD_PLUGINS",
        "rpl-core,rpl-analysis,rpl-codeobject,rpl-compare,rpl-optimize,rpl-report,rpl-rocprofv3,rpl-gfx942,"
        "rocm-perf-lab",
    )


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """The current directory of the test, with ``./kernel_binary`` that notes its arguments in a file."""
    folder = tmp_path / "workplace"
    folder.mkdir()
    write_program(folder / "kernel_binary", SCRIPT)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def profiled(workplace, rpl_standin_rocprofv3, rpl_cli):
    """``profiled(*words)``: run ``rpl profile`` with the stand-in profiler, once per run for speed."""

    def call(*words, **options):
        return rpl_cli("profile", "--runs", "1", *words, **options)

    return call


def write_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def program(workplace):
    """``program("text of a script")``: another application; returns its path."""

    def write(text: str, name: str = "other") -> Path:
        return write_program(workplace / name, text)

    return write


@pytest.fixture
def received(workplace):
    """``received()``: the arguments that ``./kernel_binary`` got."""

    def read() -> list[str]:
        return (workplace / "arguments").read_text().splitlines()

    return read


@pytest.fixture
def latest(workplace):
    """``latest("profile")``: a document of the newest run."""

    def read(name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(
            (workplace / "rpl-runs" / "latest" / f"{name}.json").read_text()
        )
        return document

    return read
