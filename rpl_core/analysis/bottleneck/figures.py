"""The figures that rules test, gathered per kernel from earlier analyses.

==========================  ==========================================================================
``hbm_utilization``         share of the memory ceiling that the traffic beyond L2 reaches
``compute_utilization``     share of the arithmetic ceilings, on the busier pipe
``theoretical_occupancy``   waves per SIMD over the architectural maximum
``grid_fill``               waves launched over the waves that the device holds at that occupancy
``active_lane_fraction``    lanes with work in an average vector instruction, over the wave size
``valu_utilization``        issue cycles of the vector units, over cycles of busy compute units
``mfma_utilization``        busy cycles of the matrix units, likewise
``dependency_wait_fraction``  part of the waves' life spent waiting for outstanding results
==========================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

import attrs

from rpl_core.analysis.occupancy.result import NoOccupancy
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness, Origin

if TYPE_CHECKING:
    from rpl_core.analysis.counters.model import KernelQuantities
    from rpl_core.analysis.occupancy.result import Occupancy
    from rpl_core.analysis.roofline.model import KernelRoofline
    from rpl_core.analysis.runtime.model import KernelTime
    from rpl_core.model.device import DeviceModel

#: Quantities of the counter map under the names that rules use. The counter window is longer than a short
#: kernel (device_models.md, fact 6), so pipe utilisation is taken relative to busy compute units.
_FROM_COUNTERS = {
    "valu_utilization": "valu_utilization_busy_cu",
    "mfma_utilization": "mfma_utilization_busy_cu",
    "dependency_wait_fraction": "dependency_wait_fraction",
}

_NO_COUNTERS = "no counters were recorded for this kernel; collect them with --roofline"


@attrs.frozen(eq=False)
class KernelEvidence:
    """Everything that earlier analyses know about one kernel."""

    time: KernelTime
    occupancy: Occupancy | NoOccupancy | None
    roofline: KernelRoofline | None
    quantities: KernelQuantities | None


def figures_of(evidence: KernelEvidence, device: DeviceModel | None, origin: Origin) -> Mapping[str, Metric]:
    """All figures of one kernel; unknown ones carry their reason."""
    roofline = evidence.roofline
    figures = {
        "hbm_utilization": roofline.hbm_utilization if roofline else Metric.unknown("fraction", _NO_COUNTERS),
        "compute_utilization": (
            roofline.compute_utilization if roofline else Metric.unknown("fraction", _NO_COUNTERS)
        ),
        "theoretical_occupancy": _occupancy(evidence.occupancy),
        "grid_fill": _grid_fill(evidence, device, origin),
        "active_lane_fraction": _active_lanes(evidence.quantities, device),
    }
    for name, quantity in _FROM_COUNTERS.items():
        figures[name] = _quantity(evidence.quantities, quantity)
    return figures


def _quantity(quantities: KernelQuantities | None, name: str) -> Metric:
    if quantities is None:
        return Metric.unknown("fraction", _NO_COUNTERS)
    found = quantities.per_launch(name)
    return found or Metric.unknown("fraction", f"the device's counter map has no {name}")


def _occupancy(found: Occupancy | NoOccupancy | None) -> Metric:
    if found is None or isinstance(found, NoOccupancy):
        return Metric.unknown("fraction", found.reason if found else "the occupancy analyzer did not run")
    return Metric(
        value=found.fraction,
        unit="fraction",
        exactness=Exactness.EXACT,
        origin=Origin.MODELLED,
        formula=f"waves per SIMD / {found.max_waves_per_simd}, limited by {found.limiter}",
    )


def _active_lanes(quantities: KernelQuantities | None, device: DeviceModel | None) -> Metric:
    lanes = _quantity(quantities, "active_lanes")
    if lanes.value is None or device is None:
        return attrs.evolve(lanes, unit="fraction")
    return attrs.evolve(lanes, value=lanes.value / device.wave_size, unit="fraction")


def _grid_fill(evidence: KernelEvidence, device: DeviceModel | None, origin: Origin) -> Metric:
    """Waves of one launch / (compute units * SIMDs * waves per SIMD at the theoretical occupancy)."""
    time, occupancy = evidence.time, evidence.occupancy
    if time.workgroup is None or time.grid is None:
        return Metric.unknown("fraction", "the launch geometry is not recorded")
    if device is None or device.compute_units is None:
        return Metric.unknown("fraction", "the number of compute units is unknown")
    if occupancy is None or isinstance(occupancy, NoOccupancy):
        return Metric.unknown("fraction", "the theoretical occupancy is unknown")
    groups = prod(-(-g // max(w, 1)) for g, w in zip(time.grid, time.workgroup, strict=True))
    waves = groups * -(-prod(time.workgroup) // device.wave_size)
    slots = device.compute_units * device.simd_per_cu * occupancy.waves_per_simd
    return Metric(
        value=waves / slots,
        unit="fraction",
        exactness=Exactness.EXACT,
        origin=origin,
        formula="launched waves / (compute_units * simd_per_cu * waves_per_simd)",
    )
