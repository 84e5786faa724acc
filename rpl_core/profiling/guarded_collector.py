"""A collector behind the plugin boundary: whatever it does, the run directory stays true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.collector import Collector
from rpl_core.plugins.boundary import plugin_boundary

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.errors import RplError
    from rpl_core.interfaces.collector import (
        CollectionPlan,
        CollectRequest,
        FollowUpRequest,
        LineSink,
        PassOutcome,
        PlannedPass,
    )
    from rpl_core.interfaces.options import Options
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.plugins.relay import Contribution


class GuardedCollector(Collector):
    """Passes every call on; anything but an expected failure becomes ``PluginError`` naming the plugin."""

    def __init__(self, offered: Contribution[Collector]) -> None:
        self.name = offered.value.name
        self.summary = offered.value.summary
        self.role = offered.value.role
        self.lost_code = offered.value.lost_code
        self._plugin = offered.plugin
        self._collector = offered.value

    def missing(self) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return self._collector.missing()

    def instead(self, options: Options) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return self._collector.instead(options)

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r} while planning"):
            return self._collector.follow_up(request)

    def announcement(self, options: Options) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return self._collector.announcement(options)

    def lost(self, error: RplError) -> Diagnostic:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return self._collector.lost(error)

    def plan(self, request: CollectRequest) -> CollectionPlan:
        with plugin_boundary(self._plugin, f"collector {self.name!r} while planning"):
            return self._collector.plan(request)

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        with plugin_boundary(self._plugin, f"collector {self.name!r} in {planned.name}"):
            return self._collector.run(planned, run_directory, log)
