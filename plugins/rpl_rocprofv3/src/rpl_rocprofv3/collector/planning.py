"""From a request to passes: timing runs first, then counter passes that the hardware can hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_core.interfaces.collector import CollectionPlan, PlannedPass
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.trace import TraceRole
from rpl_core.run_directory.layout import ARTIFACTS
from rpl_rocprofv3.collector.command_line import counter_command, trace_command
from rpl_rocprofv3.collector.findings import version_findings

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import CollectRequest
    from rpl_rocprofv3.collector.pass_planning import PassPlan
    from rpl_rocprofv3.collector.tool_version import ToolVersion

#: The base pass of a run directory, which is the only source of time.
TIMING_FOLDER = ".rocpd_profile"
#: The run that tells what recording API calls and copies costs.
REFERENCE_RUN = "without_calls"
#: A name that starts with a dash would be an option of rocprofv3, one with a comma two counters.
_COUNTER_NAME = re.compile(r"[A-Za-z]\w*(?::device=\d+)?")


def plan_collection(request: CollectRequest, executable: Path, version: ToolVersion) -> CollectionPlan:
    """All passes of ``request``; ``runs`` is 0 when only counters are wanted.

    Raises ``UsageError`` for counters that can't be planned and for a request of nothing.
    """
    if request.runs < 0 or (request.runs == 0 and not request.counters):
        raise UsageError(f"at least one run is needed, not {request.runs}")
    counters = _plan_counters(request)
    return CollectionPlan(
        passes=(
            *_timing_passes(request, executable, version),
            *_reference_run(request, executable, version),
            *_counter_passes(request, executable, version, counters),
        ),
        diagnostics=(*version_findings(version), *_refusals(request, counters)),
    )


def _timing_passes(request: CollectRequest, executable: Path, version: ToolVersion) -> list[PlannedPass]:
    command = trace_command(
        executable, version.output_format, request.command, dependencies=request.trace_dependencies
    )
    return [
        PlannedPass(
            name=f"run_{number}",
            role=TraceRole.TIMING,
            directory=f"{TIMING_FOLDER}/run_{number}",
            command=command,
            time_limit_s=request.time_limit_s,
        )
        for number in range(1, request.runs + 1)
    ]


def _reference_run(request: CollectRequest, executable: Path, version: ToolVersion) -> list[PlannedPass]:
    """The same application without calls and copies, after the timing runs: the first run warms caches up."""
    if not (request.runs and request.trace_dependencies and request.reference_run):
        return []
    command = trace_command(executable, version.output_format, request.command, dependencies=False)
    return [
        PlannedPass(
            name=REFERENCE_RUN,
            role=TraceRole.REFERENCE,
            directory=f"{ARTIFACTS}/{REFERENCE_RUN}",
            command=command,
            time_limit_s=request.time_limit_s,
        )
    ]


def _counter_passes(
    request: CollectRequest, executable: Path, version: ToolVersion, planned: PassPlan | None
) -> list[PlannedPass]:
    sets = () if planned is None else planned.passes
    return [
        PlannedPass(
            name=f"pass_{number}",
            role=TraceRole.COUNTERS,
            directory=f"{ARTIFACTS}/pass_{number}",
            command=counter_command(executable, version.output_format, request.command, counters),
            counters=counters,
            time_limit_s=request.time_limit_s,
        )
        for number, counters in enumerate(sets, start=1)
    ]


def _plan_counters(request: CollectRequest) -> PassPlan | None:
    if not request.counters:
        return None
    if request.device is None:
        raise UsageError(
            "counter passes need a device: its counter map says what one pass can hold",
            next_step="add --device NAME; `rpl devices` lists them",
        )
    for name in request.counters:
        if not _COUNTER_NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name of a counter")
    # numpy comes with this package; plugins must not load it before a plan is made.
    from rpl_rocprofv3.collector.pass_planning import plan_passes

    return plan_passes(request.device.counter_map, request.counters, request.allow_dangerous_counters)


def _refusals(request: CollectRequest, planned: PassPlan | None) -> list[Diagnostic]:
    if planned is None or request.device is None:
        return []
    dangers = {reason for _, reason in request.device.counter_map.dangerous}
    return [
        Diagnostic(
            code="collect.counter_refused",
            fact=f"counter {refused.counter} is not collected: {refused.reason}",
            remedy="--allow-dangerous-counters collects it all the same"
            if refused.reason in dangers
            else None,
        )
        for refused in planned.refused
    ]
