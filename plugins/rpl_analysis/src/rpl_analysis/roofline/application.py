"""The whole application on the roofline: work and traffic of all kernels over their summed time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.sums_of_quantities import (
    exactness_of_part,
    exactness_of_sum,
    is_open_above,
    low_or_middle,
)
from rpl_analysis.roofline.kernel import KernelFigures, kernel_roofline
from rpl_analysis.roofline.model import ApplicationRoofline
from rpl_analysis.roofline.vocabulary import additive
from rpl_core.model.metric import Exactness, Metric, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_analysis.roofline.model import KernelRoofline
    from rpl_core.model.device import DeviceModel

__all__ = ["APPLICATION", "application_roofline"]

#: Name of the application's entry; no kernel symbol contains a space.
APPLICATION = "all kernels"


def application_roofline(
    kernels: Sequence[KernelFigures],
    device: DeviceModel,
    requested_model: str,
    placed: Mapping[str, KernelRoofline],
) -> ApplicationRoofline | None:
    """Sums over one run: figures per launch times launches per timing run, over the summed kernel time.

    A kernel without counters makes the sums lower bounds. ``None`` when no kernel has a time. ``placed`` are
    the same kernels on the roofline.
    """
    timed = [kernel for kernel in kernels if kernel.launches and kernel.time_ns.value is not None]
    if not timed:
        return None
    names = [name for name in additive(device.counter_map) if any(name in k.figures for k in timed)]
    totals = {name: _total(name, timed) for name in names}
    total_ns = sum(_spent(kernel) for kernel in timed)
    counted = [kernel for kernel in timed if kernel.counter_launches]
    figures = KernelFigures(
        APPLICATION,
        totals,
        _total_time(timed, total_ns),
        1.0,
        sum(kernel.counter_launches for kernel in counted),
    )
    share = sum(_spent(kernel) for kernel in counted) / total_ns if total_ns else None
    roofline = kernel_roofline(figures, device, requested_model)
    corrections = {name: _corrected(name, timed, placed) for name in roofline.corrections}
    roofline = attrs.evolve(roofline, corrections=corrections)
    return ApplicationRoofline(roofline, len(timed), len(counted), share)


def _spent(kernel: KernelFigures) -> float:
    return (kernel.time_ns.value or 0.0) * (kernel.launches or 0.0)


def _total_time(timed: Sequence[KernelFigures], total_ns: float) -> Metric:
    exactness = exactness_of_sum(kernel.time_ns.exactness for kernel in timed)
    origin = Origin.weakest([k.time_ns.origin for k in timed if k.time_ns.origin is not None])
    return Metric(total_ns, "ns", exactness, origin, formula="sum of kernel times of one run")


def _total(name: str, timed: Sequence[KernelFigures]) -> Metric:
    parts = [(k.figures[name], k.launches or 0.0) for k in timed if name in k.figures]
    known = [(metric, launches) for metric, launches in parts if metric.value is not None]
    missing = tuple(sorted({counter for metric, _ in parts for counter in metric.missing}))
    unit = parts[0][0].unit
    if not known:
        return Metric.unknown(unit, parts[0][0].reason or "not recorded", missing)
    exactness = exactness_of_sum(metric.exactness for metric, _ in known)
    lacking = len(known) < len(timed)
    if lacking:
        exactness = exactness_of_part(exactness)
    upper = sum((m.value or 0.0 if m.upper is None else m.upper) * n for m, n in known)
    return Metric(
        value=sum(low_or_middle(metric, exactness) * launches for metric, launches in known),
        unit=unit,
        exactness=exactness,
        origin=Origin.weakest([m.origin for m, _ in known if m.origin is not None]),
        formula=f"sum of {name} x launches over kernels",
        counters=tuple(sorted({counter for metric, _ in known for counter in metric.counters})),
        missing=missing,
        upper=upper if exactness is Exactness.INTERVAL else None,
        note=f"known for {len(known)} of {len(timed)} kernels" if lacking else None,
        partial=exactness is Exactness.ESTIMATE and (lacking or is_open_above(*(m for m, _ in known))),
    )


def _corrected(
    correction: str, timed: Sequence[KernelFigures], placed: Mapping[str, KernelRoofline]
) -> Metric:
    """The sum of one correction; unknown with a kernel of which it is unknown."""
    parts = [(placed[k.name].corrections[correction], k.launches or 0.0) for k in timed]
    lacking = [
        (k.name, metric.reason) for k, (metric, _) in zip(timed, parts, strict=True) if metric.value is None
    ]
    if lacking:
        return Metric.unknown("FLOP", f"{lacking[0][0]}: {lacking[0][1]}")
    origins = [metric.origin for metric, _ in parts if metric.origin is not None]
    return Metric(
        value=sum((metric.value or 0.0) * launches for metric, launches in parts),
        unit="FLOP",
        exactness=Exactness.ESTIMATE,
        origin=Origin.weakest(origins) if origins else None,
        formula=f"sum of {correction} x launches over kernels",
    )
