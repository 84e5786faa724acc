"""Radeon GPUs of RDNA 2: gfx1030, gfx1031 and gfx1032. Unknown facts are ``None``.

CU counts, caches, register files: ROCm documentation ``gpu-specs.rst``, ROCm/legacy-rocm-build @e88a729c.
Chip ids: ``amdgpu.ids`` of libdrm (X11Libre/drm @fd15acdb). Operations per clock follow from a published
peak.
"""

from __future__ import annotations

from functools import partial

from rpl_amdgpu.models import ComputeRate
from rpl_amdgpu.radeon import radeon_family, radeon_product
from rpl_core.model.device import Pipe

__all__ = ["FAMILIES"]

_REVIEW = (
    "table of a review, https://www.guru3d.com/review/"
    "powercolor-radeon-rx-7900-xtx-hellhound-spectral-white-review/page-4/"
)
_TABLE = "table, https://fpsbench.com/compare/gpu/amd-radeon-rx-6900-xt-vs-amd-radeon-rx-vega-56"
_STREAM = "RRZE gpu-benches gpu-stream @1038c5d"
#: 23.65 TFLOP/s of an RX 6950 XT are 128 operations per clock for each of its 80 CUs at 2310 MHz.
_RATES = (ComputeRate("F32", Pipe.VALU, 128, f"23.65 TFLOP/s of 80 CUs at 2310 MHz: {_REVIEW}"),)
_product = partial(radeon_product, source="ROCm gpu-specs.rst, ROCm/legacy-rocm-build @e88a729c")

_NAVI21 = (
    _product(
        *("rx6950xt", "RX 6950 XT", 80),
        chip_ids=(0x73A5,),
        caches_mib=(4, 128),
        clock_mhz=2310.0,
        memory=(576.0, _REVIEW),
    ),
    _product(
        *("rx6900xt", "RX 6900 XT", 80),
        chip_ids=(0x73AF, 0x73BF),
        caches_mib=(4, 128),
        clock_mhz=2250.0,
        memory=(512.0, _TABLE),
        measured=((506.0, f"{_STREAM}, init"), (508.0, f"{_STREAM}, read")),
    ),
    _product("rx6800xt", "RX 6800 XT", 72, chip_ids=(0x73BF,), caches_mib=(4, 128)),
    _product("rx6800", "RX 6800", 60, chip_ids=(0x73BF,), caches_mib=(4, 128)),
    _product("w6800", "PRO W6800", 60, chip_ids=(0x73A3,), caches_mib=(4, 128)),
    _product("v620", "PRO V620", 72, chip_ids=(0x73A1, 0x73AE), caches_mib=(4, 128)),
)
_NAVI22 = (
    _product("rx6750xt", "RX 6750 XT", 40, chip_ids=(0x73DF,), caches_mib=(3, 96)),
    _product("rx6700xt", "RX 6700 XT", 40, chip_ids=(0x73DF,), caches_mib=(3, 96)),
    _product("rx6700", "RX 6700", 36, chip_ids=(0x73DF,), caches_mib=(3, 80)),
)
_NAVI23 = (
    _product("rx6650xt", "RX 6650 XT", 32, chip_ids=(0x73EF,), caches_mib=(2, 32)),
    _product("rx6600xt", "RX 6600 XT", 32, chip_ids=(0x73FF,), caches_mib=(2, 32)),
    _product("rx6600", "RX 6600", 28, chip_ids=(0x73FF,), caches_mib=(2, 32)),
    _product("w6600", "PRO W6600", 28, chip_ids=(0x73E3,), caches_mib=(2, 32)),
)
_family = partial(radeon_family, wave32_registers=1024, wave32_granule=16, rates=_RATES)

FAMILIES = (_family("gfx1030", _NAVI21), _family("gfx1031", _NAVI22), _family("gfx1032", _NAVI23))
