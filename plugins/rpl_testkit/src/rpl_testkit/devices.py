"""Device models for tests: a made-up GPU to change, and what the formulas of a device make of counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.metric import Metric


def make_device(**fields: Any) -> DeviceModel:
    """A GPU of 4 CUs and 2 XCDs at 1 GHz without ceilings or counters; ``fields`` replace its facts."""
    from rpl_core.model.device import CounterMap, DeviceModel

    defaults: dict[str, Any] = {
        "name": "test-gpu",
        "architecture": "gfx000",
        "product": "Test GPU",
        "chip_ids": (),
        "compute_units": 4,
        "xcd_count": 2,
        "simd_per_cu": 4,
        "wave_size": 64,
        "max_waves_per_simd": 8,
        "lds_bytes_per_cu": 65536,
        "clock_mhz": 1000.0,
        "l2_bytes": None,
        "llc_bytes": None,
        "l2_channels": None,
        "fp32_valu_width": 8,
        "compute_ceilings": (),
        "memory_ceilings": (),
        "counter_map": CounterMap((), ()),
    }
    return DeviceModel(**{**defaults, **fields})


def launch_quantities(device: DeviceModel, **counters: float) -> Callable[[str], Metric | None]:
    """``quantity("hbm_read_bytes")``: what the formulas of ``device`` make of one launch."""
    from rpl_analysis.counters.join import join_counters
    from rpl_analysis.counters.quantities import derive_quantities
    from rpl_core.model.metric import Origin
    from rpl_core.model.recording import Recording
    from rpl_testkit.traces import TracedDispatch, make_trace

    launch = TracedDispatch("kernel", 0, 1000, counters=dict(counters))
    (kernel,) = join_counters(Recording((make_trace([launch]),))).kernels.values()
    return derive_quantities(kernel, device, Origin.MEASURED)[0].per_launch
