"""One pass per kernel: which launch of it is traced, and with which command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_att.collector.command_line import trace_command
from rpl_core.errors import UsageError
from rpl_core.interfaces.collector import CollectionPlan, PlannedPass
from rpl_core.model.trace import TraceRole

if TYPE_CHECKING:
    from rpl_att.collector.settings import AttSettings
    from rpl_core.interfaces.collector import CollectRequest, KernelTarget

_FOLDER = "artifacts/att"
#: Activity counters exist on gfx9 only (att.md, 3.1).
_ACTIVITY_PREFIX = "gfx9"


def plan_traces(
    request: CollectRequest, executable: Path, library_folder: Path, settings: AttSettings
) -> CollectionPlan:
    """Passes for ``request.kernels`` in their order. Raises ``UsageError`` without a kernel."""
    if not request.kernels:
        raise UsageError("no kernel to trace: the timing runs recorded none")
    architecture = request.device.architecture if request.device else None
    activity = architecture is not None and architecture.startswith(_ACTIVITY_PREFIX)
    return CollectionPlan(
        passes=tuple(
            PlannedPass(
                name=f"att_{number}",
                role=TraceRole.THREAD_TRACE,
                directory=f"{_FOLDER}_{number}",
                command=trace_command(
                    executable,
                    library_folder,
                    request.command,
                    kernel.name,
                    traced_launch(kernel),
                    settings,
                    activity=activity,
                ),
                time_limit_s=request.time_limit_s,
            )
            for number, kernel in enumerate(request.kernels, start=1)
        )
    )


def traced_launch(kernel: KernelTarget) -> int:
    """The second launch, whose caches are warm, unless there is only one (launches count from 1)."""
    return 2 if kernel.launches >= 2 else 1
