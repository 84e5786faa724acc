"""Passes that collectors add after the timing and counter passes, such as traces of single kernels.

Whatever goes wrong here costs these passes, never the profile: each reason becomes one diagnostic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.ingest.load import load_recording
from rpl_core.interfaces.collector import FollowUpRequest
from rpl_core.pipeline.analyse import AnalysisRequest, analyse, recorded_device
from rpl_core.profiling.choose_collector import follow_up_collectors

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel
    from rpl_core.plugins.host import PluginHost
    from rpl_core.profiling.guarded_collector import GuardedCollector
    from rpl_core.profiling.session import ProfileSession

__all__ = ["record_follow_ups"]


def record_follow_ups(session: ProfileSession, analysis: AnalysisRequest, host: PluginHost) -> None:
    """Ask every such collector for its passes, and run them."""
    for collector in follow_up_collectors(host):
        try:
            _follow_up(session, collector, analysis, host)
        except InterruptedRunError:
            raise
        except RplError as error:
            session.diagnostics.append(collector.lost(error))


def _follow_up(
    session: ProfileSession, collector: GuardedCollector, analysis: AnalysisRequest, host: PluginHost
) -> None:
    def so_far() -> Mapping[str, Mapping[str, Any]]:
        recording = load_recording((session.run.path,), host.catalog.readers().contributions)
        documents = analyse(recording, analysis, host)
        return {name: documents.content(name) for name in documents.names}

    def device() -> DeviceModel | None:
        recording = load_recording((session.run.path,), host.catalog.readers().contributions)
        return recorded_device(analysis, recording.gpu_agents, host).model

    request = FollowUpRequest(session.info.command, analysis.options, device, so_far)
    plan = collector.follow_up(request)
    if plan is not None:
        manifest = session.run.manifest
        session.run.add_passes(plan.passes, manifest.device, manifest.device_source or "unknown")
        session.execute(plan, collector)
