"""Fixtures for tests of rpl and of its plugins; pytest finds this module through rpl-testkit's entry point.

It is imported at every start of pytest on machines with rpl-testkit, so it imports nothing heavy itself.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rpl_core.plugins.host import PluginHost
    from rpl_testkit.fixtures import ClosedLoopBench, CommandLine, RocpdBuilder


@pytest.fixture
def rpl_host(monkeypatch: pytest.MonkeyPatch) -> HostFactory:
    """``rpl_host("name", module)``: a plugin host with exactly these plugins, all of them loaded."""

    return HostFactory(monkeypatch)


@pytest.fixture
def rpl_cli(monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """``rpl_cli("plugins", "list")``: run the command, get exit code, stdout, stderr, ``json()``."""
    from rpl_testkit.fixtures import CommandLine

    return CommandLine(monkeypatch)


@pytest.fixture
def rpl_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """``rpl_site.plugin("name", source)``: a plugin as if it were installed, in a distribution of its own."""

    with open_site(tmp_path / "site", monkeypatch) as site:
        yield site


@pytest.fixture
def rpl_make_rocpd(tmp_path: Path) -> RocpdBuilder:
    """``rpl_make_rocpd([("kernel", begin_ns, end_ns), ...])``: the path of a small rocpd file."""
    from rpl_testkit.fixtures import RocpdBuilder

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
    from rpl_testkit.fixtures import open_bench

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


# Installed distributions without pip: a folder on ``sys.path`` with modules and ``.dist-info``.

HEADER = "from rpl_core import hookimpl\nRPL_API = 2\n"


class Site:
    """A site-packages folder that exists for one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.distributions: set[str] = set()

    def module(self, name: str, source: str, *, header: str = HEADER) -> None:
        (self.folder / f"{name}.py").write_text(header + textwrap.dedent(source), encoding="utf-8")

    def distribution(self, name: str, groups: dict[str, dict[str, str]], version: str = "1.0") -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines: list[str] = []
        for group, entries in groups.items():
            lines += [f"[{group}]", *(f"{entry} = {value}" for entry, value in entries.items()), ""]
        (info / "entry_points.txt").write_text("\n".join(lines))
        self.distributions.add(name)
        importlib.invalidate_caches()

    def plugin(self, name: str, source: str, *, distribution: str | None = None, header: str = HEADER) -> str:
        """A distribution ``rpl-NAME`` with one plugin NAME in one module; returns the module's name."""
        owner = distribution or f"rpl-{name}"
        module = f"fake_{owner.replace('-', '_')}_{name}".replace("-", "_")
        self.module(module, source, header=header)
        self.distribution(owner, {"rpl.plugins": {name: module}})
        return module

    def host(self, **choices: object) -> PluginHost:
        """A host that sees the core and this site's distributions."""
        from rpl_core.plugins.discovery import PluginSelection
        from rpl_core.plugins.host import create_host

        choices.setdefault("only_distributions", frozenset(self.distributions))
        return create_host(PluginSelection(**choices), config={})  # type: ignore[arg-type]


@contextmanager
def open_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site in ``folder``, whose modules are forgotten at the end."""
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield Site(folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
    importlib.invalidate_caches()


# Plugin hosts for tests: only the plugins that the test names, whatever else is installed.


class HostFactory:
    """Call it with names of installed plugins and with modules; nothing else is loaded, not even the core.

    A named plugin that does not load, or that raises in a hook, fails the test with its reason.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *plugins: str | ModuleType, config: Mapping[str, Any] | None = None) -> PluginHost:
        from rpl_core.plugins.discovery import PluginSelection, discover
        from rpl_core.plugins.host import create_host

        names = {plugin for plugin in plugins if isinstance(plugin, str)}
        modules = tuple(self._importable(p) for p in plugins if not isinstance(p, str))
        candidates = discover(modules).candidates
        wanted = {c.name for c in candidates if c.name in names or c.target in modules}
        others = tuple(sorted({c.name for c in candidates} - wanted))
        host = create_host(PluginSelection(modules=modules, disabled=others), config=config or {})
        self._check_loaded(host, names | wanted)
        return host

    def _importable(self, module: ModuleType) -> str:
        self._monkeypatch.setitem(sys.modules, module.__name__, module)
        return module.__name__

    def _check_loaded(self, host: PluginHost, names: set[str]) -> None:
        from rpl_core.plugins.discovery import PluginStatus

        for name in sorted(names):
            for record in host.record(name):
                if record.status is not PluginStatus.LOADED:
                    raise AssertionError(f"plugin {name!r} is {record.status.value}: {record.reason}")
        if host.diagnostics:
            raise AssertionError(host.diagnostics[0].fact)
