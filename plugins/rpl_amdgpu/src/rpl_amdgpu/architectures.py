"""CDNA and RDNA architectures: what a compute unit holds, rates of instructions, quirks of recordings.

Figures per compute unit; a workgroup processor of an RDNA GPU is two of them. Sources: LLVM AMDGPU back end
(``AMDGPUBaseInfo``), confirmed by what clang 22.1.8 reported for generated kernels; LDS granules from the
LLVM review of ``getLDSAllocGranule`` (2026-09); LDS and register file sizes also in ROCm's ``gpu-specs.rst``.
"""

from __future__ import annotations

from rpl_core.model.architecture import (
    Architecture,
    MatrixRates,
    OccupancyLimits,
    PackedArithmetic,
    RecordQuirks,
    RegisterFile,
    ScalarFile,
)

__all__ = ["ARCHITECTURES"]

_CDNA_SOURCE = "LLVM AMDGPU back end, confirmed by clang 22.1.8; ROCm gpu-specs.rst"
_RDNA_SOURCE = "LLVM AMDGPU back end, confirmed by clang 22.1.8"
_COUNTERS = "rocprofiler-compute and rocprofiler-sdk counter_defs.yaml @1b1610fc"
_WAVES, _PASS_LOCAL = "SQ_WAVES", ("SQ_ACCUM_PREV",)


def _packed(*data_types: str) -> tuple[PackedArithmetic, ...]:
    counted = "counted once: rocprofiler-compute pipeline-metrics.rst @1b1610fc"
    return tuple(
        PackedArithmetic(
            data_type=data_type,
            operations_per_counted=2,
            source=f"LLVM AMDGPU: v_pk_fma_{data_type.lower()}; {counted}",
        )
        for data_type in data_types
    )


def _cdna(lds_bytes: int, lds_granule_bytes: int) -> OccupancyLimits:
    return OccupancyLimits(
        register_files=(RegisterFile(wave_size=64, registers=512, granule=8, most_used=512),),
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


def _rdna(name: str, wave32_registers: int, wave32_granule: int) -> Architecture:
    wave32 = RegisterFile(wave_size=32, registers=wave32_registers, granule=wave32_granule, most_used=256)
    wave64 = RegisterFile(
        wave_size=64, registers=wave32_registers // 2, granule=wave32_granule // 2, most_used=256
    )
    limits = OccupancyLimits(
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
        occupancy=limits,
        packed=_packed("F16"),
        record_quirks=RecordQuirks(wave_counter=_WAVES, pass_local_counters=_PASS_LOCAL, source=_COUNTERS),
        source=_RDNA_SOURCE,
    )


_GFX90A = Architecture(
    name="gfx90a",
    occupancy=_cdna(lds_bytes=65536, lds_granule_bytes=512),
    packed=_packed("F16", "F32"),
    record_quirks=RecordQuirks(
        vgpr_granule=8, wave_counter=_WAVES, pass_local_counters=_PASS_LOCAL, source=_COUNTERS
    ),
    source=_CDNA_SOURCE,
)

_GFX950 = Architecture(
    name="gfx950",
    occupancy=_cdna(lds_bytes=163840, lds_granule_bytes=1280),
    packed=_packed("F16", "F32"),
    matrix_rates=MatrixRates(
        operations_per_cycle=(("F64", 32), ("F32", 64), ("F16", 1024), ("BF16", 1024), ("I8", 2048)),
        source="docs/reference/devices.md, 2.1",
    ),
    # SDK releases around ROCm 7.0 take it for an older device: (granulated + 1) * 4 VGPRs and no AGPRs, half
    # of the allocation (docs/reference/formats.md, 2.3). A later release may be right; no record tells which
    # it was.
    record_quirks=RecordQuirks(
        vgprs_may_be_halved=True,
        vgpr_granule=8,
        wave_counter=_WAVES,
        pass_local_counters=_PASS_LOCAL,
        source=f"rocprofiler-sdk of ROCm 7.0 (docs/reference/formats.md, 2.3); {_COUNTERS}",
    ),
    source=_CDNA_SOURCE,
)

#: In name order.
ARCHITECTURES: tuple[Architecture, ...] = (
    _rdna("gfx1030", wave32_registers=1024, wave32_granule=16),
    _rdna("gfx1100", wave32_registers=1536, wave32_granule=24),
    _rdna("gfx1201", wave32_registers=1536, wave32_granule=24),
    _GFX90A,
    _GFX950,
)
