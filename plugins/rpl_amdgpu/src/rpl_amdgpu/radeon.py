"""Radeon GPUs as products: no partitions, one chip id for several of them, cache sizes in MiB.

The driver counts compute units, two of which make a workgroup processor. Memory is GDDR or that of the host;
its ceiling stands at the level "hbm", as device memory does on every device.
"""

from __future__ import annotations

from rpl_amdgpu.architectures import rdna_architecture
from rpl_amdgpu.products import ComputeRate, Family, Product
from rpl_amdgpu.rdna_counters import rdna_counter_map
from rpl_core.model.device import CeilingOrigin, MemoryCeiling

__all__ = ["radeon_family", "radeon_product"]

_MIB = 2**20
_ABSENT = {
    "fp32_valu_width": "the FLOP model by VALU width is documented for CDNA3 only",
    "l2_channels": "no public reference at hand states it",
}


def radeon_product(
    name: str,
    label: str,
    compute_units: int,
    *,
    caches_mib: tuple[int, int],
    source: str,
    chip_ids: tuple[int, ...] = (),
    clock_mhz: float | None = None,
    memory: tuple[float, str] | None = None,
    measured: tuple[tuple[float, str], ...] = (),
) -> Product:
    """A product by the name on its box; ``caches_mib`` are L2 and Infinity Cache.

    ``memory`` is the GB/s that its source states, ``measured`` what benchmarks found.
    """
    l2_mib, llc_mib = caches_mib
    return Product(
        name=name,
        product=f"AMD Radeon {label}",
        names=(label,),
        source=source,
        chip_ids=chip_ids,
        xcd_count=1,
        units_per_xcd=compute_units,
        clock_mhz=clock_mhz,
        l2_bytes=l2_mib * _MIB,
        llc_bytes=llc_mib * _MIB,
        hbm=None if memory is None else MemoryCeiling("hbm", memory[0], CeilingOrigin.SPEC, memory[1]),
        published_memory=tuple(
            MemoryCeiling("hbm", peak_gbps, CeilingOrigin.PUBLISHED, what) for peak_gbps, what in measured
        ),
    )


def radeon_family(
    name: str,
    products: tuple[Product, ...],
    *,
    wave32_registers: int,
    wave32_granule: int,
    rates: tuple[ComputeRate, ...] = (),
    bytes_beyond_l2: bool = True,
) -> Family:
    """The products of one RDNA instruction set; kernels of it are wave32 or wave64, each for itself."""
    return Family(
        architecture=rdna_architecture(
            name, wave32_registers=wave32_registers, wave32_granule=wave32_granule
        ),
        wave_size=32,
        counter_map=rdna_counter_map(bytes_beyond_l2=bytes_beyond_l2),
        products=products,
        compute_rates=rates,
        absent=_ABSENT,
    )
