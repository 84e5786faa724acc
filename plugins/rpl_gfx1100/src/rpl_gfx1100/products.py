"""Radeon GPUs of RDNA 3 (gfx1100), 3.5 (gfx1151) and 4 (gfx1201). Unknown facts are ``None``.

CU counts, caches, register files: ROCm documentation ``gpu-specs.rst`` @2b48ffc7. Chip ids: ``amdgpu.ids``
of libdrm (X11Libre/drm @fd15acdb). Operations per clock: rocprofiler-compute's panel for gfx1151, whose
documentation states them for RDNA 3 as well.
"""

from __future__ import annotations

from functools import partial

from rpl_amdgpu.models import ComputeRate
from rpl_amdgpu.radeon import radeon_family, radeon_product
from rpl_core.model.device import Pipe

__all__ = ["FAMILIES"]

_PANEL = "rocm-systems rocprofiler-compute analysis_configs/gfx1151/0200_system_speed_of_light.yaml @12a8aac2"
_REVIEW = (
    "table of a review, https://www.guru3d.com/review/"
    "powercolor-radeon-rx-7900-xtx-hellhound-spectral-white-review/page-4/"
)
_DEALER = "a dealer's page, https://www.itcreations.com/amd-gpu/amd-radeon-pro-w7900-gpu"
#: Dual issue (VOPD) needs pairs of independent instructions: it is the packed rate of these GPUs.
_RATES = (
    ComputeRate("F64", Pipe.VALU, 4, _PANEL),
    ComputeRate("F32", Pipe.VALU, 128, _PANEL),
    ComputeRate("F32", Pipe.VALU_PACKED, 256, f"{_PANEL}, dual issue"),
    ComputeRate("F16", Pipe.VALU_PACKED, 512, f"{_PANEL}, packed and dual issue"),
)
_product = partial(radeon_product, source="ROCm gpu-specs.rst @2b48ffc7")

_GFX1100 = (
    _product(
        *("rx7900xtx", "RX 7900 XTX", 96),
        chip_ids=(0x744C,),
        caches_mib=(6, 96),
        clock_mhz=2500.0,
        memory=(960.0, _REVIEW),
    ),
    _product(
        *("rx7900xt", "RX 7900 XT", 84), chip_ids=(0x744C,), caches_mib=(6, 80), memory=(800.0, _REVIEW)
    ),
    _product("rx7900gre", "RX 7900 GRE", 80, chip_ids=(0x744C,), caches_mib=(6, 64)),
    _product(
        *("w7900", "PRO W7900", 96), chip_ids=(0x7448, 0x744A), caches_mib=(6, 96), memory=(864.0, _DEALER)
    ),
    _product("w7800", "PRO W7800", 70, chip_ids=(0x745E,), caches_mib=(6, 64)),
    _product("w7800-48gb", "PRO W7800 48GB", 70, chip_ids=(0x7449,), caches_mib=(6, 96)),
)
_GFX1151 = (
    _product("8060s", "8060S", 40, chip_ids=(0x1586,), caches_mib=(2, 32)),
    _product("8050s", "8050S", 32, chip_ids=(0x1586,), caches_mib=(2, 32)),
    _product("8040s", "8040S", 16, chip_ids=(0x1586,), caches_mib=(2, 32)),
)
_GFX1201 = (
    _product("rx9070xt", "RX 9070 XT", 64, chip_ids=(0x7550,), caches_mib=(8, 64)),
    _product("rx9070", "RX 9070", 56, chip_ids=(0x7550,), caches_mib=(8, 64)),
    _product("rx9070gre", "RX 9070 GRE", 48, caches_mib=(6, 48)),
    _product("r9700", "AI PRO R9700", 64, caches_mib=(8, 64)),
)
_family = partial(radeon_family, wave32_registers=1536, wave32_granule=24)

#: No source at hand states rates of gfx1201, and its counters of requests to memory were seen to be wrong.
FAMILIES = (
    _family("gfx1100", _GFX1100, rates=_RATES),
    _family("gfx1151", _GFX1151, rates=_RATES),
    _family("gfx1201", _GFX1201, bytes_beyond_l2=False),
)
