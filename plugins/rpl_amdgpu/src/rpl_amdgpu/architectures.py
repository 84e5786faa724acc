"""What CDNA and RDNA instruction sets share: what a compute unit holds, packed instructions, record quirks.

Figures per compute unit; a workgroup processor of an RDNA GPU is two of them. Sources: LLVM AMDGPU back end
(``AMDGPUBaseInfo``), confirmed by what clang 22.1.8 reported for generated kernels; LDS granules from the
LLVM review of ``getLDSAllocGranule`` (2026-09); LDS and register file sizes also in ROCm's ``gpu-specs.rst``.
"""

from __future__ import annotations

from rpl_core.model.device import (
    Architecture,
    MatrixRates,
    OccupancyLimits,
    PackedArithmetic,
    RecordQuirks,
    RegisterFile,
    ScalarFile,
)

__all__ = ["cdna_architecture", "packed_arithmetic", "rdna_architecture"]

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
