"""Device models of gfx942: a product in a partition, or a GPU of which only the driver's facts are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.model.device import CeilingOrigin, DeviceModel
from rpl_core.values import frozen
from rpl_gfx942.architecture import (
    ARCHITECTURE,
    FACTS,
    LDS_BYTES_PER_CU,
    SIMD_PER_CU,
    WAVE_SIZE,
    WAVES_PER_SIMD,
)
from rpl_gfx942.ceilings import compute_ceilings, on_chip_ceilings
from rpl_gfx942.counter_map import COUNTER_MAP
from rpl_gfx942.partitions import full_partition
from rpl_gfx942.products import CU_PER_XCD, L2_BYTES_PER_XCD, L2_CHANNELS_PER_XCD, PRODUCTS

if TYPE_CHECKING:
    from rpl_core.model.device import MemoryCeiling
    from rpl_gfx942.partitions import Partition
    from rpl_gfx942.products import Product

__all__ = [
    "NULLABLE",
    "GpuSize",
    "device_models",
    "product_model",
    "resized_product",
    "sized_model",
    "with_reason",
]

#: The VALU width of the documented FLOP model (kalowery/rocm-perf-lab @f9ff67a4 docs/ARCHITECTURE.md, section
#: 2).
_FP32_VALU_WIDTH = 8
#: Facts that depend on the product or its partition, and may be unknown.
NULLABLE = ("compute_units", "xcd_count", "clock_mhz", "l2_bytes", "llc_bytes", "l2_channels")


@frozen
class GpuSize:
    """What the driver says about the size of one logical GPU; ``None`` where it says nothing."""

    compute_units: int | None = None
    xcd_count: int | None = None
    clock_mhz: float | None = None


def device_models() -> tuple[DeviceModel, ...]:
    """One model per product, in its full partition."""
    models = []
    for product in PRODUCTS:
        full = full_partition(product)
        models.append(product_model(product, full) if full else resized_product(product, GpuSize()))
    return tuple(models)


def product_model(product: Product, partition: Partition, clock_mhz: float | None = None) -> DeviceModel:
    """``product`` as one logical GPU of ``partition``; ``clock_mhz`` is the driver's, if it states one."""
    whole = partition.xcd_count == product.xcd_count
    size = GpuSize(partition.xcd_count * CU_PER_XCD, partition.xcd_count, clock_mhz or product.clock_mhz)
    bare = sized_model(product.name, product.product, size)
    return attrs.evolve(
        bare,
        chip_ids=product.chip_ids,
        llc_bytes=product.llc_bytes // partition.memory_parts if product.llc_bytes else None,
        compute_ceilings=bare.compute_ceilings + (product.measured_compute if whole else ()),
        memory_ceilings=(*_hbm_ceilings(product, partition), *bare.memory_ceilings),
        partition=partition.mode,
        source=product.source,
    )


def resized_product(product: Product, size: GpuSize) -> DeviceModel:
    """A known product of a size that fits none of its partitions: masked CUs, or nothing recorded.

    Of a product whose size no reference states, the driver's figures and its own measured ceilings hold.
    """
    sized_by_reference = product.xcd_count is not None
    bare = sized_model(
        product.name,
        product.product,
        attrs.evolve(size, clock_mhz=size.clock_mhz or product.clock_mhz),
    )
    measured = () if sized_by_reference else product.measured_memory
    model = attrs.evolve(
        bare,
        chip_ids=product.chip_ids,
        memory_ceilings=(*measured, *bare.memory_ceilings),
        source=product.source,
    )
    return with_reason(model, product.unknown_reason or "the recorded size fits no partition of the product")


def with_reason(model: DeviceModel, reason: str) -> DeviceModel:
    """``model`` with ``reason`` for every fact that is unknown."""
    unknown = [name for name in NULLABLE if getattr(model, name) is None]
    if model.memory_ceiling("hbm", CeilingOrigin.SPEC) is None:
        unknown.append("HBM bandwidth")
    return attrs.evolve(model, unknown_facts=(f"{', '.join(unknown)}: {reason}",) if unknown else ())


def _hbm_ceilings(product: Product, partition: Partition) -> tuple[MemoryCeiling, ...]:
    if partition.xcd_count == product.xcd_count:
        return (*((product.hbm,) if product.hbm else ()), *product.measured_memory)
    measured = tuple(ceiling for mode, ceiling in product.measured_in if mode == partition.mode)
    if product.hbm is None or product.xcd_count is None:
        return measured
    share = attrs.evolve(
        product.hbm,
        peak_gbps=product.hbm.peak_gbps * partition.xcd_count / product.xcd_count,
        source=f"{partition.xcd_count} of {product.xcd_count} XCDs of: {product.hbm.source}",
    )
    return (share, *measured)


def sized_model(name: str, product: str, size: GpuSize) -> DeviceModel:
    """What holds for every gfx942 of that size: no LLC, no HBM, no measured ceilings."""
    xcds = size.xcd_count
    channels = None if xcds is None else xcds * L2_CHANNELS_PER_XCD
    return DeviceModel(
        name=name,
        architecture=ARCHITECTURE,
        product=product,
        chip_ids=(),
        compute_units=size.compute_units,
        xcd_count=xcds,
        simd_per_cu=SIMD_PER_CU,
        wave_size=WAVE_SIZE,
        max_waves_per_simd=WAVES_PER_SIMD,
        lds_bytes_per_cu=LDS_BYTES_PER_CU,
        clock_mhz=size.clock_mhz,
        l2_bytes=None if xcds is None else xcds * L2_BYTES_PER_XCD,
        llc_bytes=None,
        l2_channels=channels,
        fp32_valu_width=_FP32_VALU_WIDTH,
        compute_ceilings=compute_ceilings(size.compute_units, size.clock_mhz),
        memory_ceilings=on_chip_ceilings(size.compute_units, channels, size.clock_mhz),
        counter_map=COUNTER_MAP,
        source="facts of every gfx942; size as the driver reported it",
        architecture_facts=FACTS,
    )
