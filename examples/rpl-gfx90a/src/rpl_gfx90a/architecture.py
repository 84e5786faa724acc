"""gfx90a as an instruction set: what a compute unit holds, packed instructions, quirks of recordings.

Registers, waves and workgroups: LLVM AMDGPU back end (``AMDGPUBaseInfo``); LDS: ROCm's ``gpu-specs.rst`` and,
for its granule, the LLVM review of ``getLDSAllocGranule`` (2026-09).
"""

from __future__ import annotations

from rpl_core.model.architecture import (
    Architecture,
    OccupancyLimits,
    PackedArithmetic,
    RecordQuirks,
    RegisterFile,
    ScalarFile,
)

ARCHITECTURE = "gfx90a"

_OCCUPANCY = OccupancyLimits(
    register_files=(RegisterFile(wave_size=64, registers=512, granule=8, most_used=512),),
    # 102 addressable and 6 for VCC and its kin, in steps of 16; LLVM: up to 100 leave 8 waves, more leave 7.
    scalar_file=ScalarFile(registers=800, granule=16, most_used=112, compiler_waves=((100, 8), (112, 7))),
    has_accum_vgprs=True,
    waves_per_simd=8,
    simds_per_cu=4,
    workgroup_slots_per_cu=16,
    lds_bytes_per_cu=65536,
    lds_granule_bytes=512,
    max_lds_bytes_per_workgroup=65536,
    max_workgroup_size=1024,
    source="LLVM AMDGPU back end; ROCm gpu-specs.rst",
)

FACTS = Architecture(
    name=ARCHITECTURE,
    occupancy=_OCCUPANCY,
    packed=tuple(
        PackedArithmetic(
            data_type=data_type,
            operations_per_counted=2,
            source="LLVM AMDGPU: v_pk_fma_f16, v_pk_fma_f32; rocprofiler-compute pipeline-metrics.rst",
        )
        for data_type in ("F16", "F32")
    ),
    record_quirks=RecordQuirks(
        vgpr_granule=8,
        wave_counter="SQ_WAVES",
        pass_local_counters=("SQ_ACCUM_PREV",),
        source="rocprofiler-sdk counter_defs.yaml, gfx90a",
    ),
    source="LLVM AMDGPU back end; ROCm gpu-specs.rst",
)
