"""The collectors that record an application, each behind the plugin boundary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError, PluginError, RplError, UsageError
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.trace import TraceRole
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.plugins.packages import provider_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.interfaces.collector import CollectRequest, FollowUpRequest, LineSink, PlannedPass
    from rpl_core.interfaces.options import Options
    from rpl_core.plugins.host import PluginHost
    from rpl_core.plugins.relay import Contribution

#: The collector without a profiler. It records no kernel, so it is only taken on request.
TIMING_ONLY = "timing-only"


class GuardedCollector(Collector):
    """Passes every call on and looks at the answer.

    Anything but an expected failure becomes ``PluginError`` naming the plugin.
    """

    def __init__(self, offered: Contribution[Collector]) -> None:
        self.name = offered.value.name
        self.summary = offered.value.summary
        self.role = offered.value.role
        self.device = offered.value.device
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
            return None if plan is None else _sound_plan(plan)

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
            return _sound_plan(self._collector.plan(request))

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        with plugin_boundary(self._plugin, f"collector {self.name!r} in {planned.name}"):
            outcome = require_value(self._collector.run(planned, run_directory, log), PassOutcome)
            if outcome.planned != planned:
                raise ValueError(f"the outcome is that of {outcome.planned.name}")
            lacking = [f for f in outcome.files if not (run_directory / f).is_file() or not _is_inside(f)]
            if lacking:
                raise ValueError(f"the outcome names {lacking[0]}, which is not there")
            if planned.role is TraceRole.TIMING and not outcome.files and outcome.process_ms is None:
                raise ValueError("the outcome has neither files nor a time of the process")
            return outcome


def _sound_plan(plan: object) -> CollectionPlan:
    """``plan`` if its passes can be told apart. Raises ``TypeError`` or ``ValueError`` otherwise."""
    sound = require_value(plan, CollectionPlan)
    names = [one.name for one in sound.passes]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a plan needs passes, each with a name of its own, not {names}")
    for place in (*names, *(one.directory for one in sound.passes)):
        if not _is_inside(place):
            raise ValueError(f"{place!r} is no place in the run directory")
    return sound


def _is_inside(path: str) -> bool:
    return bool(path) and not Path(path).is_absolute() and ".." not in Path(path).parts


def _text(answer: object) -> str | None:
    if answer is not None and not isinstance(answer, str):
        raise TypeError(f"text or None was expected, not {type(answer).__name__}")
    return answer


def choose_collector(
    host: PluginHost, name: str | None, options: Options, device: str | None = None
) -> GuardedCollector:
    """The collector called ``name``, or that of ``device``, or the first usable. Raises ``MissingError``."""
    collectors = host.catalog.collectors()
    recording = [GuardedCollector(c) for c in collectors.contributions if c.value.role is TraceRole.TIMING]
    name = name or next((c.name for c in recording if device and c.device == device), None)
    wanted = next((other for c in recording if (other := c.instead(options)) is not None), name)
    if wanted is not None and collectors.get(wanted).role is not TraceRole.TIMING:  # says which there are
        raise UsageError(
            f"the collector {wanted!r} adds passes to a profile and records none",
            next_step="name one that records applications",
        )
    reasons = []
    for candidate in recording:
        if candidate.name == wanted or not (wanted or candidate.device or candidate.name == TIMING_ONLY):
            reason = candidate.missing()
            if reason is None:
                return candidate
            reasons.append(reason)
    if reasons:
        raise MissingError(reasons[0])
    package = provider_of("kinds", "collectors") or "rocm-perf-lab"
    raise MissingError(
        "no collector and no device plugin is installed: the core alone records nothing",
        next_step=f"pip install {package}, then `rpl profile -- ./app`",
    )


def follow_up_collectors(host: PluginHost) -> Sequence[GuardedCollector]:
    """Those that add passes to a finished profile, in plugin order."""
    offered = host.catalog.collectors().contributions
    return [GuardedCollector(c) for c in offered if c.value.role is not TraceRole.TIMING]
