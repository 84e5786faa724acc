"""A collector behind the plugin boundary: whatever it does, the run directory stays true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import PluginError, RplError
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.interfaces.collector import CollectRequest, FollowUpRequest, LineSink, PlannedPass
    from rpl_core.interfaces.options import Options
    from rpl_core.plugins.relay import Contribution


class GuardedCollector(Collector):
    """Passes every call on and looks at the answer.

    Anything but an expected failure becomes ``PluginError`` naming the plugin.
    """

    def __init__(self, offered: Contribution[Collector]) -> None:
        self.name = offered.value.name
        self.summary = offered.value.summary
        self.role = offered.value.role
        self.lost_code = offered.value.lost_code
        self._plugin = offered.plugin
        self._collector = offered.value

    def missing(self) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return _text(self._collector.missing())

    def instead(self, options: Options) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return _text(self._collector.instead(options))

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r} while planning"):
            plan = self._collector.follow_up(request)
            return None if plan is None else require_value(plan, CollectionPlan)

    def announcement(self, options: Options) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return _text(self._collector.announcement(options))

    def lost(self, error: RplError) -> Diagnostic:
        try:
            with plugin_boundary(self._plugin, f"collector {self.name!r}"):
                return require_value(self._collector.lost(error), Diagnostic)
        except PluginError:  # what was lost is told all the same
            return super().lost(error)

    def plan(self, request: CollectRequest) -> CollectionPlan:
        with plugin_boundary(self._plugin, f"collector {self.name!r} while planning"):
            return require_value(self._collector.plan(request), CollectionPlan)

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        with plugin_boundary(self._plugin, f"collector {self.name!r} in {planned.name}"):
            outcome = require_value(self._collector.run(planned, run_directory, log), PassOutcome)
            if outcome.planned != planned:
                raise ValueError(f"the outcome is that of {outcome.planned.name}")
            lacking = [file for file in outcome.files if not (run_directory / file).is_file()]
            if lacking:
                raise ValueError(f"the outcome names {lacking[0]}, which is not there")
            return outcome


def _text(answer: object) -> str | None:
    if answer is not None and not isinstance(answer, str):
        raise TypeError(f"text or None was expected, not {type(answer).__name__}")
    return answer
