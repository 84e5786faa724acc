"""Which kernels are traced, which launch of each, and with which command: one pass per kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_att.collector.command_line import trace_command
from rpl_core.errors import MissingError, UsageError
from rpl_core.interfaces.collector import CollectionPlan, PlannedPass
from rpl_core.model.trace import TraceRole
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_att.collector.settings import AttSettings

_FOLDER = "artifacts/att"
#: Activity counters exist on gfx9 only (docs/reference/thread-trace.md, 4.1).
_ACTIVITY_PREFIX = "gfx9"


@frozen
class KernelTarget:
    """A kernel to trace, by its name in the timing runs, and its launches per run."""

    name: str
    launches: float

    @property
    def traced_launch(self) -> int:
        """The second launch, whose caches are warm, unless there is only one (launches count from 1)."""
        return 2 if self.launches >= 2 else 1


@frozen
class TraceTools:
    """rocprofv3 and the folder of the trace decoder."""

    profiler: Path
    decoder_folder: Path


def most_critical(documents: Mapping[str, Mapping[str, Any]], top: int) -> tuple[KernelTarget, ...]:
    """Kernels by their weight on the critical path, then by time, then by name.

    Raises ``MissingError`` where nothing tells how much the kernels weigh.
    """
    profile = documents.get("profile")
    if profile is None:
        raise MissingError(
            "which kernels are the most critical is not known without profile.json",
            next_step="pip install rpl-analysis",
        )
    ranked = sorted(profile["kernels"], key=_rank)
    return tuple(KernelTarget(kernel["name"], kernel["launches"]) for kernel in ranked[:top])


def _rank(kernel: Mapping[str, Any]) -> tuple[float, float, str]:
    return -(kernel["criticality_weight"] or 0.0), -(kernel["runtime_ms"] or 0.0), kernel["name"]


def plan_traces(
    kernels: Sequence[KernelTarget],
    command: tuple[str, ...],
    tools: TraceTools,
    settings: AttSettings,
    *,
    architecture: str | None,
    time_limit_s: float | None,
) -> CollectionPlan:
    """Passes for ``kernels`` in their order. Raises ``UsageError`` without a kernel."""
    if not kernels:
        raise UsageError("no kernel to trace: the timing runs recorded none")
    activity = architecture is not None and architecture.startswith(_ACTIVITY_PREFIX)
    return CollectionPlan(
        passes=tuple(
            PlannedPass(
                name=f"att_{number}",
                role=TraceRole.THREAD_TRACE,
                directory=f"{_FOLDER}_{number}",
                command=trace_command(
                    tools.profiler,
                    tools.decoder_folder,
                    command,
                    kernel.name,
                    kernel.traced_launch,
                    settings,
                    activity=activity,
                ),
                time_limit_s=time_limit_s,
            )
            for number, kernel in enumerate(kernels, start=1)
        )
    )
