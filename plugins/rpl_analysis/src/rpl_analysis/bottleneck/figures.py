"""The figures that rules test, gathered per kernel from earlier analyses.

==========================  ==========================================================================
``hbm_utilization``         share of the memory ceiling that the traffic beyond L2 reaches
``l2_utilization``          share of the L2 ceiling that the traffic between vL1D and L2 reaches
``lds_utilization``         share of the LDS ceiling that indexed accesses reach, less bank conflicts; zero
                            for kernels that allocate none
``compute_utilization``     share of the arithmetic ceilings, on the busier pipe
``theoretical_occupancy``   waves per SIMD over the architectural maximum
``grid_fill``               waves launched over the waves that the device holds at that occupancy
``active_lane_fraction``    lanes with work in an average vector instruction, over the wave size
``valu_utilization``        part of the time in which the vector units issue: an interval, since the
                            counter window is longer than a kernel (docs/reference/counters.md, 1.4)
``mfma_utilization``        part of the time in which the matrix units are busy, likewise
``dependency_wait_fraction``  part of the waves' life spent waiting for outstanding results; without counters
                            that of the waves of a thread trace
``trace_headroom``          part of the traced waves' life in which they waited for memory or were idle
==========================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.bottleneck.ceilings import ceiling_shares
from rpl_codeobject.occupancy import NoOccupancy
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.counters.model import KernelQuantities
    from rpl_analysis.roofline.model import KernelRoofline
    from rpl_analysis.runtime.model import KernelTime
    from rpl_codeobject.occupancy import Occupancy
    from rpl_core.model.device import DeviceModel

#: Quantities of the counter map that rules use under the same name.
_FROM_COUNTERS = (
    "active_lane_fraction",
    "valu_utilization",
    "mfma_utilization",
    "dependency_wait_fraction",
    "lds_bank_conflicts_per_access",
)

_NO_COUNTERS = "no counters were recorded for this kernel"


@frozen(eq=False)
class KernelEvidence:
    """Everything that earlier analyses know about one kernel."""

    time: KernelTime
    occupancy: Occupancy | NoOccupancy | None
    roofline: KernelRoofline | None
    quantities: KernelQuantities | None
    uses_lds: bool = True  # or it is not known
    others: Mapping[str, Metric] = attrs.field(factory=dict)  # scalar facts of other analyzers


def figures_of(evidence: KernelEvidence, device: DeviceModel | None, origin: Origin) -> Mapping[str, Metric]:
    """All figures of one kernel; unknown ones carry their reason.

    A scalar fact of another analyzer stands for a figure of the same name that counters leave unknown.
    """
    why_none = _why_no_counters(device, origin)
    figures = {
        **ceiling_shares(evidence.roofline, why_none, uses_lds=evidence.uses_lds),
        "theoretical_occupancy": _occupancy(evidence.occupancy),
        "grid_fill": _grid_fill(evidence, device, origin),
    }
    figures.update({name: _quantity(evidence.quantities, name, why_none) for name in _FROM_COUNTERS})
    for name in _counted(evidence.quantities, device):
        figures.setdefault(name, _quantity(evidence.quantities, name, why_none))
    for name, metric in evidence.others.items():
        if name not in figures or figures[name].value is None:
            figures[name] = metric
    return figures


def _counted(quantities: KernelQuantities | None, device: DeviceModel | None) -> Iterable[str]:
    """Names of everything that counters can tell, recorded or not."""
    if quantities is not None:
        return quantities.values
    return [quantity.name for quantity in device.counter_map.quantities] if device is not None else ()


def _why_no_counters(device: DeviceModel | None, origin: Origin) -> str:
    """With what collects them where that can be: an emulator has none, an unknown device defines none."""
    if origin is Origin.MODELLED:
        return f"{_NO_COUNTERS}: it ran in an emulator, and only a GPU has them"
    if device is None or not device.counter_map.quantities:
        return _NO_COUNTERS
    return f"{_NO_COUNTERS}; collect them with --roofline"


def _quantity(quantities: KernelQuantities | None, name: str, why_none: str) -> Metric:
    if quantities is None:
        return Metric.unknown("fraction", why_none)
    metric = quantities.per_launch(name)
    return metric or Metric.unknown("fraction", f"the device's counter map has no {name}")


def _occupancy(occupancy: Occupancy | NoOccupancy | None) -> Metric:
    if occupancy is None or isinstance(occupancy, NoOccupancy):
        reason = occupancy.reason if occupancy else "the occupancy analyzer did not run"
        return Metric.unknown("fraction", reason)
    return Metric(
        value=occupancy.fraction,
        unit="fraction",
        exactness=Exactness.EXACT,
        origin=Origin.MODELLED,
        formula=f"waves per SIMD / {occupancy.max_waves_per_simd}, limited by {occupancy.limiter}",
    )


def _grid_fill(evidence: KernelEvidence, device: DeviceModel | None, origin: Origin) -> Metric:
    """Waves of one launch / (compute units * SIMDs * waves per SIMD at the theoretical occupancy)."""
    time, occupancy = evidence.time, evidence.occupancy
    if time.workgroup is None or time.grid is None:
        return Metric.unknown("fraction", "the launch geometry is not recorded")
    if device is None or device.compute_units is None:
        return Metric.unknown("fraction", "the number of compute units is unknown")
    if occupancy is None or isinstance(occupancy, NoOccupancy):
        return Metric.unknown("fraction", "the theoretical occupancy is unknown")
    if occupancy.wave_size is None:
        return Metric.unknown("fraction", "the wave size of this kernel is unknown")
    groups = prod(-(-g // max(w, 1)) for g, w in zip(time.grid, time.workgroup, strict=True))
    waves = groups * -(-prod(time.workgroup) // occupancy.wave_size)
    slots = device.compute_units * device.simd_per_cu * occupancy.waves_per_simd
    return Metric(
        value=waves / slots,
        unit="fraction",
        exactness=Exactness.EXACT,
        origin=origin,
        formula="launched waves / (compute_units * simd_per_cu * waves_per_simd)",
    )
