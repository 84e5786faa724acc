"""The gate on memory traffic: a candidate must not move over 5 % more bytes to and from HBM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_analysis.counters.formulas import counters_of
from rpl_analysis.counters.join import JoinRules, join_counters
from rpl_analysis.counters.quantities import derive_quantities
from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.ingest.load import load_recording
from rpl_core.interfaces.collector import CollectRequest
from rpl_core.model.device import DeviceModel
from rpl_core.model.metric import Metric, Origin
from rpl_core.profiling import ProfileSession
from rpl_core.run_directory.manifest import RunDirectory
from rpl_core.text import shorten
from rpl_core.values import frozen
from rpl_optimize.contracts.optimize import GuardPart

if TYPE_CHECKING:
    from rpl_optimize.measurement.measure import MeasureTools

GUARD = "hbm-traffic"
#: Most that the traffic of a kernel may grow, as a fraction (the architectural regression gate).
MOST_GROWTH = 0.05
#: Other kernels count from this part of the application's traffic on (chosen: below, page walks and other
#: passengers outweigh them).
LEAST_PART = 0.05
_PARTS = ("hbm_read_bytes", "hbm_write_bytes")
_DEVICE_SOURCE = "the baseline's recording"


@frozen
class TrafficMeasurement:
    """``kernel`` is the exact displayed name; ``directory`` gets one run directory per side."""

    kernel: str
    base: tuple[str, ...]
    new: tuple[str, ...]
    directory: Path
    device: DeviceModel | None
    time_limit_s: float | None = None


@frozen
class _Traffic:
    """Bytes of one kernel in a whole run, and how they were found out."""

    bytes: float
    how: tuple[str, ...]


class _UnknownTrafficError(Exception):
    """Why there is nothing to compare."""


def measure_traffic(request: TrafficMeasurement, tools: MeasureTools) -> GuardPart:
    """Run both commands once per counter pass and compare the bytes of each kernel, summed over its launches.

    The kernel itself always counts, others from 5 % of the baseline's traffic on. ``passed`` is ``None`` with
    a reason where the counters can't be had. Counters are read under a profiler that serialises dispatches:
    they give bytes here and never times. Raises ``InterruptedRunError``.
    """
    try:
        before = _traffic("base", request.base, request, tools)
        after = _traffic("new", request.new, request, tools)
        return _compared(request.kernel, before, after)
    except InterruptedRunError:
        raise
    except _UnknownTrafficError as unknown:
        return GuardPart(guard=GUARD, passed=None, reason=str(unknown))
    except RplError as error:
        return GuardPart(guard=GUARD, passed=None, reason=f"the traffic can't be counted: {error.fact}")


def _traffic(
    label: str, command: tuple[str, ...], request: TrafficMeasurement, tools: MeasureTools
) -> Mapping[str, _Traffic]:
    device = request.device
    if device is None:
        raise _UnknownTrafficError("no installed plugin knows the counters of this device")
    counters = _counters(device)
    if not counters:
        raise _UnknownTrafficError(f"no counters for HBM traffic are known of {device.name}")
    asked = CollectRequest(
        command=command, runs=0, device=device, counters=counters, time_limit_s=request.time_limit_s
    )
    directory = _record(label, asked, request.directory / label, tools)
    recording = load_recording((directory,), tools.host.catalog.readers().contributions)
    joined = join_counters(recording, JoinRules.of(device, device.architecture_facts))
    if not joined.kernels:
        raise _UnknownTrafficError(f"the counter passes of {label} hold no usable dispatch")
    origin = Origin.weakest([trace.origin for trace in recording.counter_passes])
    by_kernel = {}
    for name, kernel in joined.kernels.items():
        quantities, _ = derive_quantities(kernel, device, origin)
        metrics = [quantities.per_launch(part) for part in _PARTS]
        traffic = _sum([metric for metric in metrics if metric is not None], kernel.launches)
        if traffic is not None:
            by_kernel[name] = traffic
    return by_kernel


def _counters(device: DeviceModel) -> tuple[str, ...]:
    """What the preferred formulas need, named as the device's plugin recommends to collect it."""
    quantities = [q for q in device.counter_map.quantities if q.name in _PARTS and q.formulas]
    if len(quantities) < len(_PARTS):
        return ()
    needed = dict.fromkeys(name for q in quantities for name in counters_of(q.formulas[0]))
    recommended = {name.removesuffix("_sum"): name for name in device.counter_map.recommended}
    return tuple(recommended.get(name, name) for name in needed)


def _record(label: str, asked: CollectRequest, directory: Path, tools: MeasureTools) -> Path:
    plan = tools.collector.plan(asked)
    if not plan.passes:
        facts = "; ".join(d.fact for d in plan.diagnostics)
        raise _UnknownTrafficError(f"no counter pass was planned{': ' + facts if facts else ''}")
    run = RunDirectory.create(
        directory,
        command=asked.command,
        collector=tools.collector.name,
        device=asked.device.name if asked.device else None,
        device_source=_DEVICE_SOURCE,
        options={"time_limit_s": asked.time_limit_s},
        plan=plan.passes,
        plugins=(),
    )

    def step(name: str) -> None:
        tools.step(f"{label} {name}")

    session = ProfileSession(run, tools.collector, tools.host.relay, tools.log, step)
    session.start()
    try:
        session.execute(plan)
    except (InterruptedRunError, KeyboardInterrupt):
        raise session.interrupted() from None
    session.finish(None)
    failed = [entry for entry in run.manifest.passes if entry.state == "failed"]
    if failed:
        raise _UnknownTrafficError(f"counter pass {failed[0].name} of {label} failed: {failed[0].error}")
    return run.path


def _sum(metrics: list[Metric], launches: int) -> _Traffic | None:
    """Reads and writes of all launches; ``None`` unless both are known."""
    values = [metric.value for metric in metrics if metric.value is not None]
    if len(values) < len(_PARTS):
        return None
    return _Traffic(sum(values) * launches, tuple(metric.formula or "" for metric in metrics))


def _compared(kernel: str, before: Mapping[str, _Traffic], after: Mapping[str, _Traffic]) -> GuardPart:
    for side, found in (("baseline", before), ("candidate", after)):
        if kernel not in found:
            raise _UnknownTrafficError(f"the HBM traffic of the kernel is unknown in the {side}")
    if before[kernel].how != after[kernel].how:
        raise _UnknownTrafficError("the traffic of both sides was found by different formulas")
    grown = list(_grown(kernel, before, after))
    reason = "; ".join(grown) or f"the kernel moves {_change(before[kernel].bytes, after[kernel].bytes)}"
    return GuardPart(guard=GUARD, passed=not grown, reason=reason)


def _grown(kernel: str, before: Mapping[str, _Traffic], after: Mapping[str, _Traffic]) -> Iterator[str]:
    whole = sum(traffic.bytes for traffic in before.values())
    for name, old in before.items():
        new = after.get(name)
        counts = name == kernel or old.bytes >= LEAST_PART * whole
        if counts and new is not None and new.bytes > (1 + MOST_GROWTH) * old.bytes:
            yield f"{shorten(name, 60)} moves {_change(old.bytes, new.bytes)}"


def _change(old: float, new: float) -> str:
    change = f"{new / old - 1:+.1%}" if old > 0 else ("+0.0%" if new == 0 else "from nothing")
    return f"{new:.4g} bytes to and from HBM instead of {old:.4g} ({change})"
