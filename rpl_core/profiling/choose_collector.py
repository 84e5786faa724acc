"""Choose the collector that records an application, each behind the plugin boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import MissingError, UsageError
from rpl_core.model.trace import TraceRole
from rpl_core.plugins.packages import provider_of
from rpl_core.profiling.guarded_collector import GuardedCollector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.interfaces.options import Options
    from rpl_core.plugins.host import PluginHost

__all__ = ["TIMING_ONLY", "choose_collector", "follow_up_collectors"]

#: The collector without a profiler. It records no kernel, so it is only taken on request.
TIMING_ONLY = "timing-only"


def choose_collector(host: PluginHost, name: str | None, options: Options) -> GuardedCollector:
    """The collector called ``name``, or the first usable one in plugin order.

    A collector may name another one to use with these options. Raises ``MissingError`` where none works.
    """
    collectors = host.catalog.collectors()
    recording = [GuardedCollector(c) for c in collectors.contributions if c.value.role is TraceRole.TIMING]
    wanted = next((other for c in recording if (other := c.instead(options)) is not None), name)
    if (
        wanted is not None and collectors.get(wanted).role is not TraceRole.TIMING
    ):  # get: says which there are
        raise UsageError(
            f"the collector {wanted!r} adds passes to a profile and records none",
            next_step="name one that records applications",
        )
    reasons = []
    for candidate in recording:
        if candidate.name == wanted or (wanted is None and candidate.name != TIMING_ONLY):
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
