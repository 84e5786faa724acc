"""Device models for tests: a small made-up GPU of which a test changes only what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel


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
