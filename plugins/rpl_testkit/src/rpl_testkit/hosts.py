"""Plugin hosts for tests: only the plugins that the test names, whatever else is installed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    import pytest

    from rpl_core.plugins.host import PluginHost


class HostFactory:
    """Call it with names of installed plugins and with modules; nothing else is loaded, not even the core.

    A named plugin that does not load, or that raises in a hook, fails the test with its reason.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *plugins: str | ModuleType, config: Mapping[str, Any] | None = None) -> PluginHost:
        from rpl_core.plugins.discovery import discover
        from rpl_core.plugins.host import create_host
        from rpl_core.plugins.selection import PluginSelection

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
        from rpl_core.plugins.records import PluginStatus

        for name in sorted(names):
            for record in host.record(name):
                if record.status is not PluginStatus.LOADED:
                    raise AssertionError(f"plugin {name!r} is {record.status.value}: {record.reason}")
        if host.diagnostics:
            raise AssertionError(host.diagnostics[0].fact)
