"""Device models of AMD GPUs: instruction sets, families of products, a product in one of its partitions.

An ``Architecture`` says what a compute unit holds. A device plugin writes one ``Family`` down, the products
of one instruction set; ``device_models`` makes device models of it, and ``detection`` finds the product
behind recorded agents. What is unknown is ``None``, with a reason beside it.

A partition has whole XCDs (rocprofiler-compute ``mi_gpu_spec.yaml`` @1b1610fc). CUs, L2 channels and the fair
share of HBM bandwidth scale with them; Infinity Cache is shared by all partitions in NPS1. Ceilings are rates
per clock times what there is of a unit times the clock.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from rpl_core.model.device import (
    Architecture,
    CeilingOrigin,
    ComputeCeiling,
    CounterMap,
    DeviceModel,
    MatrixRates,
    MemoryCeiling,
    OccupancyLimits,
    PackedArithmetic,
    Pipe,
    RecordQuirks,
    RegisterFile,
    ScalarFile,
)
from rpl_core.values import frozen

_CDNA_SOURCE = "LLVM AMDGPU back end, confirmed by clang 22.1.8; ROCm gpu-specs.rst"
_RDNA_SOURCE = "LLVM AMDGPU back end, confirmed by clang 22.1.8"
_COUNTERS = "rocprofiler-compute and rocprofiler-sdk counter_defs.yaml @1b1610fc"
_COUNTED_ONCE = "LLVM AMDGPU: {instruction}; counted once: rocprofiler-compute pipeline-metrics.rst @1b1610fc"
_WAVES, _PASS_LOCAL = "SQ_WAVES", ("SQ_ACCUM_PREV",)
_ALLOCATED_BY = 8


def packed_arithmetic(*data_types: str) -> tuple[PackedArithmetic, ...]:
    """Packed multiply-adds of these types, which counters take for one operation where they do two."""
    return tuple(
        PackedArithmetic(
            data_type=data_type,
            operations_per_counted=2,
            source=_COUNTED_ONCE.format(instruction=f"v_pk_fma_{data_type.lower()}"),
        )
        for data_type in data_types
    )


def cdna_architecture(
    name: str,
    *,
    lds_bytes: int = 65536,
    lds_granule_bytes: int = 512,
    matrix_rates: tuple[tuple[str, int], ...] = (),
    vgprs_may_be_halved: bool = False,
    quirks_source: str = _COUNTERS,
    source: str = _CDNA_SOURCE,
) -> Architecture:
    """A CDNA instruction set with unified registers (gfx90a and later): wave64, four SIMDs of 8 waves."""
    occupancy = OccupancyLimits(
        register_files=(RegisterFile(wave_size=64, registers=512, granule=_ALLOCATED_BY, most_used=512),),
        # 102 addressable and 6 for VCC and its kin, in steps of 16. By LLVM's getOccupancyWithNumSGPRs for
        # GFX9 up to 100 leave 8 waves, more leave 7.
        scalar_file=ScalarFile(registers=800, granule=16, most_used=112, compiler_waves=((100, 8), (112, 7))),
        has_accum_vgprs=True,
        waves_per_simd=8,
        simds_per_cu=4,
        workgroup_slots_per_cu=16,
        lds_bytes_per_cu=lds_bytes,
        lds_granule_bytes=lds_granule_bytes,
        max_lds_bytes_per_workgroup=lds_bytes,
        max_workgroup_size=1024,
        source=_CDNA_SOURCE,
    )
    rates = MatrixRates(operations_per_cycle=matrix_rates, source="docs/reference/devices.md, 2.1")
    return Architecture(
        name=name,
        occupancy=occupancy,
        packed=packed_arithmetic("F16", "F32"),
        matrix_rates=rates if matrix_rates else None,
        record_quirks=RecordQuirks(
            vgprs_may_be_halved=vgprs_may_be_halved,
            vgpr_granule=_ALLOCATED_BY,
            wave_counter=_WAVES,
            pass_local_counters=_PASS_LOCAL,
            source=quirks_source,
        ),
        source=source,
    )


def rdna_architecture(name: str, *, wave32_registers: int, wave32_granule: int) -> Architecture:
    """An RDNA instruction set: two SIMDs of 16 waves per unit, and kernels of wave32 or wave64.

    ``wave32_registers`` and ``wave32_granule`` are what waves of 32 lanes see; waves of 64 see half of both.
    """
    wave32 = RegisterFile(wave_size=32, registers=wave32_registers, granule=wave32_granule, most_used=256)
    wave64 = RegisterFile(
        wave_size=64, registers=wave32_registers // 2, granule=wave32_granule // 2, most_used=256
    )
    occupancy = OccupancyLimits(
        register_files=(wave32, wave64),
        scalar_file=None,
        has_accum_vgprs=False,
        waves_per_simd=16,
        simds_per_cu=2,
        workgroup_slots_per_cu=16,
        lds_bytes_per_cu=65536,
        lds_granule_bytes=1024,
        max_lds_bytes_per_workgroup=65536,
        max_workgroup_size=1024,
        cus_per_workgroup_processor=2,
        source=_RDNA_SOURCE,
    )
    return Architecture(
        name=name,
        occupancy=occupancy,
        packed=packed_arithmetic("F16"),
        record_quirks=RecordQuirks(wave_counter=_WAVES, pass_local_counters=_PASS_LOCAL, source=_COUNTERS),
        source=_RDNA_SOURCE,
    )


@frozen
class ComputeRate:
    """Operations of one data type on one pipe per clock and compute unit."""

    data_type: str
    pipe: Pipe
    per_clock: int
    source: str


@frozen
class ByteRate:
    """Bytes of one memory level per clock, for each ``per``: "CU" or "channel" (of the L2 cache)."""

    level: str
    per: str
    width: int
    source: str


@frozen(kw_only=True)
class Product:
    """One product with all of its compute units; ``partitions`` maps a mode to its number of XCDs.

    ``xcd_count`` is 1 where there is one die, and the die of a product that shows as several GPUs is a
    product by itself. ``names`` are what its name in a recording contains; left empty, ``name`` in capitals.
    ``published_in`` holds ceilings that were measured in another partition than the whole product.
    """

    name: str
    product: str
    source: str
    chip_ids: tuple[int, ...] = ()  # PCI device ids: physical and virtual function
    names: tuple[str, ...] = ()
    xcd_count: int | None = None
    units_per_xcd: int | None = None
    clock_mhz: float | None = None
    l2_bytes: int | None = None
    llc_bytes: int | None = None
    l2_channels: int | None = None
    hbm: MemoryCeiling | None = None
    partitions: tuple[tuple[str, int], ...] = ()
    published_memory: tuple[MemoryCeiling, ...] = ()
    published_compute: tuple[ComputeCeiling, ...] = ()
    published_in: tuple[tuple[str, MemoryCeiling], ...] = ()
    unknown_reason: str = ""

    @property
    def compute_units(self) -> int | None:
        if self.xcd_count is None or self.units_per_xcd is None:
            return None
        return self.xcd_count * self.units_per_xcd

    @property
    def known_as(self) -> tuple[str, ...]:
        """Words that name it in a recording, in capitals."""
        return tuple(name.upper() for name in self.names) or (self.name.upper(),)


@frozen(kw_only=True)
class Family:
    """An instruction set with its products, as a device plugin knows it.

    ``absent`` says why a fact of a device model is ``None`` on every product, such as a cache that the
    family does not have.
    """

    architecture: Architecture
    wave_size: int
    counter_map: CounterMap
    products: tuple[Product, ...]
    compute_rates: tuple[ComputeRate, ...] = ()
    byte_rates: tuple[ByteRate, ...] = ()
    l2_bytes_per_xcd: int | None = None
    l2_channels_per_xcd: int | None = None
    fp32_valu_width: int | None = None
    absent: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        return self.architecture.name


#: Facts that depend on the product or its partition, and may be unknown.
NULLABLE = ("compute_units", "xcd_count", "clock_mhz", "l2_bytes", "llc_bytes", "l2_channels")


@frozen
class GpuSize:
    """What the driver says about the size of one logical GPU; ``None`` where it says nothing."""

    compute_units: int | None = None
    xcd_count: int | None = None
    clock_mhz: float | None = None


@frozen
class Partition:
    """A compute partition by mode, e.g. ``("CPX", 1)``; ``memory_parts`` is the n of NPSn if recorded.

    ``mode`` is ``None`` where a product has no partition modes.
    """

    mode: str | None
    xcd_count: int
    memory_parts: int = 1


def device_models(family: Family) -> tuple[DeviceModel, ...]:
    """One model per product, in its full partition; of a product of unknown size, what is known of it."""
    models = []
    for product in family.products:
        if product.xcd_count is None or product.compute_units is None:
            models.append(resized_product(family, product, GpuSize(xcd_count=product.xcd_count)))
        else:
            mode = "SPX" if product.partitions else None
            models.append(product_model(family, product, Partition(mode, product.xcd_count), GpuSize()))
    return tuple(models)


def product_model(family: Family, product: Product, partition: Partition, size: GpuSize) -> DeviceModel:
    """``product`` as one logical GPU of ``partition``; what the driver says in ``size`` fills gaps."""
    xcds, per_xcd = partition.xcd_count, product.units_per_xcd
    whole = xcds == product.xcd_count
    known = GpuSize(
        size.compute_units if per_xcd is None else xcds * per_xcd, xcds, size.clock_mhz or product.clock_mhz
    )
    bare = sized_model(family, product.name, product.product, known, channels=product.l2_channels)
    model = attrs.evolve(
        bare,
        chip_ids=product.chip_ids,
        l2_bytes=bare.l2_bytes or product.l2_bytes,
        llc_bytes=product.llc_bytes // partition.memory_parts if product.llc_bytes else None,
        compute_ceilings=bare.compute_ceilings + (product.published_compute if whole else ()),
        memory_ceilings=(*_hbm_ceilings(product, partition), *bare.memory_ceilings),
        partition=partition.mode,
        source=product.source,
    )
    return with_reason(family, model, product.unknown_reason)


def resized_product(family: Family, product: Product, size: GpuSize) -> DeviceModel:
    """A known product of a size that fits none of its partitions: masked CUs, or nothing recorded.

    Of a product whose size no reference states, the driver's figures and its own measured ceilings hold.
    """
    clock_mhz = size.clock_mhz or product.clock_mhz
    bare = sized_model(family, product.name, product.product, attrs.evolve(size, clock_mhz=clock_mhz))
    measured = () if product.compute_units is not None else product.published_memory
    model = attrs.evolve(
        bare,
        chip_ids=product.chip_ids,
        memory_ceilings=(*measured, *bare.memory_ceilings),
        source=product.source,
    )
    reason = product.unknown_reason or "the recorded size fits no partition of the product"
    return with_reason(family, model, reason)


def with_reason(family: Family, model: DeviceModel, reason: str) -> DeviceModel:
    """``model`` with a reason for every fact that is unknown: the family's own, else ``reason``."""
    of_family = {name: why for name, why in family.absent.items() if getattr(model, name) is None}
    unknown = [name for name in NULLABLE if getattr(model, name) is None and name not in of_family]
    if model.memory_ceiling("hbm", CeilingOrigin.SPEC) is None:
        unknown.append("HBM bandwidth")
    stated = [f"{', '.join(unknown)}: {reason or 'no public reference at hand states it'}"] if unknown else []
    return attrs.evolve(
        model, unknown_facts=(*stated, *(f"{name}: {why}" for name, why in of_family.items()))
    )


def _hbm_ceilings(product: Product, partition: Partition) -> tuple[MemoryCeiling, ...]:
    if partition.xcd_count == product.xcd_count:
        return (*((product.hbm,) if product.hbm else ()), *product.published_memory)
    measured = tuple(ceiling for mode, ceiling in product.published_in if mode == partition.mode)
    if product.hbm is None or product.xcd_count is None:
        return measured
    share = attrs.evolve(
        product.hbm,
        peak_gbps=product.hbm.peak_gbps * partition.xcd_count / product.xcd_count,
        source=f"{partition.xcd_count} of {product.xcd_count} XCDs of: {product.hbm.source}",
    )
    return (share, *measured)


def sized_model(
    family: Family, name: str, product: str, size: GpuSize, *, channels: int | None = None
) -> DeviceModel:
    """What holds for every GPU of the family of that size: no LLC, no HBM, no measured ceilings."""
    limits = family.architecture.occupancy
    assert limits is not None, "a family states its occupancy limits"
    xcds, per_xcd, bytes_per_xcd = size.xcd_count, family.l2_channels_per_xcd, family.l2_bytes_per_xcd
    if xcds is not None and per_xcd is not None:
        channels = xcds * per_xcd
    return DeviceModel(
        name=name,
        architecture=family.name,
        product=product,
        chip_ids=(),
        compute_units=size.compute_units,
        xcd_count=xcds,
        simd_per_cu=limits.simds_per_cu,
        wave_size=family.wave_size,
        max_waves_per_simd=limits.waves_per_simd,
        lds_bytes_per_cu=limits.lds_bytes_per_cu,
        clock_mhz=size.clock_mhz,
        l2_bytes=None if xcds is None or bytes_per_xcd is None else xcds * bytes_per_xcd,
        llc_bytes=None,
        l2_channels=channels,
        fp32_valu_width=family.fp32_valu_width,
        compute_ceilings=_compute_ceilings(family, size),
        memory_ceilings=_on_chip_ceilings(family, size, channels),
        counter_map=family.counter_map,
        source=f"facts of every {family.name}; size as the driver reported it",
        architecture_facts=family.architecture,
    )


def _compute_ceilings(family: Family, size: GpuSize) -> tuple[ComputeCeiling, ...]:
    """Spec ceilings in GFLOP/s: rate x CU x MHz / 1000; none when a factor is unknown."""
    units, clock_mhz = size.compute_units, size.clock_mhz
    if units is None or clock_mhz is None:
        return ()
    return tuple(
        ComputeCeiling(
            rate.data_type,
            rate.pipe,
            rate.per_clock * units * clock_mhz / 1000,
            CeilingOrigin.SPEC,
            f"{rate.per_clock} FLOP/clk/CU x {units} CU x {clock_mhz:g} MHz; {rate.source}",
        )
        for rate in family.compute_rates
    )


def _on_chip_ceilings(family: Family, size: GpuSize, channels: int | None) -> tuple[MemoryCeiling, ...]:
    """Spec ceilings of caches and LDS in GB/s; a level with an unknown factor is absent."""
    counts, clock_mhz = {"CU": size.compute_units, "channel": channels}, size.clock_mhz
    return tuple(
        MemoryCeiling(
            rate.level,
            rate.width * count * clock_mhz / 1000,
            CeilingOrigin.SPEC,
            f"{rate.width} B/clk/{rate.per} x {count} x {clock_mhz:g} MHz; {rate.source}",
            on_engine_clock=True,
        )
        for rate in family.byte_rates
        if (count := counts[rate.per]) is not None and clock_mhz is not None
    )
