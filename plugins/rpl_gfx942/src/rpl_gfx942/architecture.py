"""gfx942 as an instruction set: what a compute unit holds, rates of instructions, quirks of recordings.

Registers, waves and workgroups: LLVM AMDGPU back end (``AMDGPUBaseInfo``), confirmed by what clang 22.1.8
reported for generated kernels; sizes of LDS and register file also in ROCm's ``gpu-specs.rst``; the LDS
granule from the LLVM review of ``getLDSAllocGranule`` (2026-09).
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

__all__ = ["ARCHITECTURE", "FACTS", "LDS_BYTES_PER_CU", "SIMD_PER_CU", "WAVES_PER_SIMD", "WAVE_SIZE"]

ARCHITECTURE = "gfx942"
#: Four SIMDs of 8 wave64 slots and 64 KiB LDS per CU (ROCm gpu-specs.rst).
SIMD_PER_CU = 4
WAVE_SIZE = 64
WAVES_PER_SIMD = 8
LDS_BYTES_PER_CU = 65536

_COUNTED_ONCE = "LLVM AMDGPU: {instruction}; counted once: rocprofiler-compute pipeline-metrics.rst @1b1610fc"

_OCCUPANCY = OccupancyLimits(
    register_files=(RegisterFile(wave_size=WAVE_SIZE, registers=512, granule=8, most_used=512),),
    # 102 addressable and 6 for VCC and its kin, in steps of 16. By LLVM's getOccupancyWithNumSGPRs for GFX9
    # up to 100 leave 8 waves, more leave 7.
    scalar_file=ScalarFile(registers=800, granule=16, most_used=112, compiler_waves=((100, 8), (112, 7))),
    has_accum_vgprs=True,
    waves_per_simd=WAVES_PER_SIMD,
    simds_per_cu=SIMD_PER_CU,
    workgroup_slots_per_cu=16,
    lds_bytes_per_cu=LDS_BYTES_PER_CU,
    lds_granule_bytes=512,
    max_lds_bytes_per_workgroup=LDS_BYTES_PER_CU,
    max_workgroup_size=1024,
    source="LLVM AMDGPU back end, confirmed by clang 22.1.8; ROCm gpu-specs.rst",
)

FACTS = Architecture(
    name=ARCHITECTURE,
    occupancy=_OCCUPANCY,
    packed=tuple(
        PackedArithmetic(
            data_type=data_type,
            operations_per_counted=2,
            source=_COUNTED_ONCE.format(instruction=f"v_pk_fma_{data_type.lower()}"),
        )
        for data_type in ("F16", "F32")
    ),
    # A quarter of the rates per CU that the ceilings have.
    matrix_rates=MatrixRates(
        operations_per_cycle=(
            ("F64", 64),
            ("F32", 64),
            ("XF32", 256),
            ("F16", 512),
            ("BF16", 512),
            ("I8", 1024),
            ("F8", 1024),
        ),
        source="docs/reference/devices.md, 2.1",
    ),
    record_quirks=RecordQuirks(
        vgpr_granule=8,
        wave_counter="SQ_WAVES",
        pass_local_counters=("SQ_ACCUM_PREV",),
        source="rocprofiler-compute and rocprofiler-sdk counter_defs.yaml @1b1610fc",
    ),
    source="LLVM AMDGPU back end; ROCm gpu-specs.rst @2b48ffc7",
)
