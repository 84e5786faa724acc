"""The GPUs of an instruction set: replace them by yours, and leave out what you can't cite.

CUs, caches: ROCm gpu-specs.rst, ROCm/rocm-docs @2b48ffc7. Chip ids: amdgpu.ids, X11Libre/drm @fd15acdb.
"""

from __future__ import annotations

from functools import partial

from rpl_amdgpu.models import ComputeRate
from rpl_amdgpu.radeon import radeon_family, radeon_product
from rpl_core.model.device import Pipe

_PANEL = "rocprofiler-compute analysis_configs/gfx1151/0200_system_speed_of_light.yaml @12a8aac2"
_product = partial(radeon_product, source="ROCm gpu-specs.rst @2b48ffc7")

FAMILY = radeon_family(
    "gfx1101",
    (
        _product("rx7800xt", "RX 7800 XT", 60, chip_ids=(0x747E,), caches_mib=(4, 64)),
        _product("rx7700xt", "RX 7700 XT", 54, chip_ids=(0x747E,), caches_mib=(4, 48)),
    ),
    # 768 KiB of vector registers per workgroup processor: 1536 per lane of a wave32, in steps of 24 (LLVM).
    wave32_registers=1536,
    wave32_granule=24,
    rates=(ComputeRate("F32", Pipe.VALU, 128, _PANEL),),
)
