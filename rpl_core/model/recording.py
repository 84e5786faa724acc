"""A recording: the traces of one profiled application, ready for analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.origin import Origin
from rpl_core.model.trace import TraceRole
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.device import ComputeCeiling, MemoryCeiling
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.trace import Agent, Trace


@frozen(eq=False)
class Recording:
    """All traces of one application: repeated timing runs and separate counter passes.

    ``process_ms`` holds wall-clock process times when no GPU trace exists.
    """

    traces: tuple[Trace, ...]
    process_ms: tuple[float, ...] = ()
    command: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    incomplete: str | None = None  # why a run directory is unfinished
    counters_missing: str | None = None  # why counters that were asked for are not there
    files: tuple[tuple[Path, ...], ...] = ()  # that were read, per argument

    @property
    def timing_runs(self) -> tuple[Trace, ...]:
        """The traces that may serve as a source of time, in run order."""
        return tuple(t for t in self.traces if t.role is TraceRole.TIMING)

    @property
    def reference_runs(self) -> tuple[Trace, ...]:
        """Runs without calls and copies, beside timing runs with them: what recording these costs."""
        return tuple(t for t in self.traces if t.role is TraceRole.REFERENCE)

    @property
    def counter_passes(self) -> tuple[Trace, ...]:
        """Every trace that holds counter values, in pass order."""
        return tuple(t for t in self.traces if t.counters is not None)

    @property
    def origin(self) -> Origin:
        return Origin.weakest([t.origin for t in self.traces])

    @property
    def ceilings(self) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
        """What a benchmark reached on the machine of the recording: ``Trace.extras["ceilings"]``."""
        return tuple(ceiling for trace in self.traces for ceiling in trace.extras.get("ceilings", ()))

    @property
    def gpu_agents(self) -> tuple[Agent, ...]:
        """The GPUs that executed at least one dispatch, without repeats.

        One trace may describe an agent of which another one knows only the number.
        """
        seen: dict[tuple[str, int], Agent] = {}
        for trace in self.traces:
            # One entry per agent, and one that -1 lands in.
            used = np.zeros(len(trace.agents) + 1, np.bool_)
            used[trace.dispatches.agent] = True
            for index in np.flatnonzero(used[:-1]).tolist():
                agent = trace.agents[index]
                known = seen.get((agent.node, agent.index))
                if agent.kind == "GPU" and (known is None or known.architecture is None):
                    seen[agent.node, agent.index] = agent
        return tuple(seen.values())
