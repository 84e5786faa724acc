"""Thread traces of the most critical kernels, in passes of their own after everything else.

Whatever goes wrong here costs the traces, never the profile: each reason becomes one diagnostic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import InterruptedRunError, MissingError, RplError
from rpl_core.ingest.load import load_recording
from rpl_core.interfaces.collector import CollectRequest, KernelTarget
from rpl_core.model.trace import TraceRole
from rpl_core.pipeline.analyse import AnalysisRequest, analyse, recorded_device
from rpl_core.profiling.guarded_collector import GuardedCollector
from rpl_core.profiling.session import thread_trace_problem

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import KernelProfile
    from rpl_core.interfaces.collector import Collector
    from rpl_core.plugins.host import PluginHost
    from rpl_core.profiling.session import ProfileSession


@attrs.frozen
class DeepAnalysis:
    """How many kernels to trace, and how many seconds one pass may take."""

    top: int
    time_limit_s: float | None = None


def record_thread_traces(
    session: ProfileSession, deep: DeepAnalysis, analysis: AnalysisRequest, host: PluginHost
) -> None:
    """Trace the ``deep.top`` most critical kernels of the run so far."""
    try:
        collector = thread_trace_collector(host)
        recording = load_recording((session.run.path,), host.catalog.readers().contributions)
        kernels = analyse(recording, analysis, host).profile.kernels
        device = recorded_device(analysis, recording.gpu_agents, host)
        plan = collector.plan(
            CollectRequest(
                command=session.info.command,
                runs=0,
                device=device.model,
                kernels=most_critical(kernels, deep.top),
                time_limit_s=deep.time_limit_s,
            )
        )
    except InterruptedRunError:
        raise
    except RplError as error:
        session.diagnostics.append(thread_trace_problem(error))
        return
    session.run.add_passes(plan.passes, session.info.device, device.source)
    session.execute(plan, collector)


def thread_trace_collector(host: PluginHost) -> Collector:
    """The first usable collector of thread traces; ``MissingError`` when there is none."""
    offered = [c for c in host.catalog.collectors().contributions if c.value.role is TraceRole.THREAD_TRACE]
    if not offered:
        raise MissingError("no installed plugin records thread traces", next_step="pip install rpl-att")
    reasons = []
    for one in offered:
        collector = GuardedCollector(one)
        reason = collector.missing()
        if reason is None:
            return collector
        reasons.append(reason)
    raise MissingError(reasons[0])


def most_critical(kernels: Sequence[KernelProfile], top: int) -> tuple[KernelTarget, ...]:
    """Kernels by their weight on the critical path, then by time, then by name."""
    ranked = sorted(kernels, key=lambda k: (-(k.criticality_weight or 0.0), -(k.runtime_ms or 0.0), k.name))
    return tuple(KernelTarget(kernel.name, kernel.launches) for kernel in ranked[:top])
