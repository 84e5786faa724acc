"""Fixtures for tests of rpl and of its plugins; pytest finds this module through rpl-testkit's entry point.

It is imported at every start of pytest on machines with rpl-testkit, so it imports nothing heavy itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rpl_testkit.closed_loop import ClosedLoopBench
    from rpl_testkit.command_line import CommandLine
    from rpl_testkit.recordings import RocpdBuilder
    from rpl_testkit.sites import HostFactory, Site


@pytest.fixture
def rpl_host(monkeypatch: pytest.MonkeyPatch) -> HostFactory:
    """``rpl_host("name", module)``: a plugin host with exactly these plugins, all of them loaded."""
    from rpl_testkit.sites import HostFactory

    return HostFactory(monkeypatch)


@pytest.fixture
def rpl_cli(monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """``rpl_cli("plugins", "list")``: run the command, get exit code, stdout, stderr, ``json()``."""
    from rpl_testkit.command_line import CommandLine

    return CommandLine(monkeypatch)


@pytest.fixture
def rpl_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """``rpl_site.plugin("name", source)``: a plugin as if it were installed, in a distribution of its own."""
    from rpl_testkit.sites import open_site

    with open_site(tmp_path / "site", monkeypatch) as site:
        yield site


@pytest.fixture
def rpl_make_rocpd(tmp_path: Path) -> RocpdBuilder:
    """``rpl_make_rocpd([("kernel", begin_ns, end_ns), ...])``: the path of a small rocpd file."""
    from rpl_testkit.recordings import RocpdBuilder

    return RocpdBuilder(tmp_path)


@pytest.fixture
def rpl_standin_rocprofv3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that behaves like rocprofv3, first on PATH; returns its path. What it writes is synthetic."""
    import os

    from rpl_testkit.rocprofv3_standin import install_standin

    folder = tmp_path / "standin-bin"
    folder.mkdir()
    program = install_standin(folder)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ.get('PATH', '')}")
    return program


@pytest.fixture
def rpl_closed_loop_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClosedLoopBench]:
    """Stand-ins for hipcc and rocprofv3 with declared times, first on PATH; needs clang-22 and its linker."""
    from rpl_testkit.closed_loop import open_bench

    with open_bench(tmp_path / "bench", tmp_path / "bench-programs", monkeypatch) as bench:
        yield bench


@pytest.fixture
def rpl_require() -> Callable[[str], Path]:
    """``rpl_require("clang-22")``: the path of a program, or the test ends as skipped with the reason."""
    from rpl_testkit.requirements import require as required_path

    return required_path


@pytest.fixture(scope="session")
def rpl_shared_data(pytestconfig: pytest.Config) -> Path:
    """The folder of real recordings beside the project (``RPL_SHARED_DATA``), or skip."""
    from rpl_testkit.requirements import find_data

    return find_data(pytestconfig.rootpath)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skipped tests by what they need."""
    from rpl_testkit.requirements import skips_by_need

    reports = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple)]
    counts = skips_by_need(reasons)
    if counts:
        parts = ", ".join(f"{name} {count}" for name, count in counts.items())
        terminalreporter.write_line(f"rpl: tests skipped because something is absent: {parts}")
