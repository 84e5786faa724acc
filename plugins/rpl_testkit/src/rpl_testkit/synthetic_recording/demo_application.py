"""A small believable program on a synthetic MI300X, for the demo, the stand-in profiler and tests.

One time step of an invented particle code: a streaming update, a half-precision GEMM on the matrix cores,
a compute-bound force kernel, and kernels that are divergent, limited by LDS, latency-bound or too small to
matter. Declared durations stay below the ceilings of docs/reference/devices.md, 1 and 2.
"""

from __future__ import annotations

from typing import Final

from rpl_testkit.rocpd_writer.rows import RocpdContents
from rpl_testkit.synthetic_recording.application_model import (
    Allocate,
    Application,
    Copy,
    HostWork,
    KernelModel,
    Launch,
    Record,
    Repeat,
    SyncDevice,
    SyncStream,
    Wait,
    WorkModel,
)
from rpl_testkit.synthetic_recording.recording import Collection, ProcessIdentity, record

__all__ = ["DEMO_APPLICATION", "make_demo_contents"]

_MIB: Final = 1 << 20

#: 2^26 floats: reads 512 MiB, writes 256 MiB; 805 MB in 205 us = 3.9 TB/s, near the measured copy rate.
_TRIAD = KernelModel(
    name="stream_triad(float*, float const*, float const*, float, unsigned long)",
    symbol="_Z12stream_triadPfPKfS1_fm",
    grid=(1 << 26, 1, 1),
    workgroup=(256, 1, 1),
    nominal_ns=205_000,
    arch_vgpr=8,
    sgpr=32,
    work=WorkModel(
        valu_per_wave={"FMA_F32": 1, "INT32": 5, "INT64": 2, "OTHER": 1},
        vmem_read_per_wave=2,
        vmem_write_per_wave=1,
        read_bytes=512 * _MIB,
        write_bytes=256 * _MIB,
        l1_bytes=768 * _MIB,
        l2_read_bytes=512 * _MIB,
        l2_write_bytes=256 * _MIB,
        waves_per_busy_cu=27.0,
        wait_share=0.93,
        issue_wait_share=0.03,
    ),
)

#: 4096^3: 2 * 4096^3 = 137.4 GFLOP over 4096 waves = 2048 MFMAs of 16384 FLOP each per wave.
_GEMM = KernelModel(
    name="gemm_f16_mfma_128x128(_Float16 const*, _Float16 const*, _Float16*, int, int, int)",
    symbol="_Z21gemm_f16_mfma_128x128PKDF16_S0_PDF16_iii",
    grid=(8192, 32, 1),
    workgroup=(256, 1, 1),
    nominal_ns=165_000,
    arch_vgpr=128,
    accum_vgpr=128,
    sgpr=64,
    lds_bytes=32_768,
    work=WorkModel(
        valu_per_wave={"INT32": 620, "INT64": 90, "CVT": 64, "OTHER": 410},
        mfma_type="F16",
        mfma_per_wave=2048,
        salu_per_wave=700,
        branch_per_wave=130,
        vmem_read_per_wave=1024,
        vmem_write_per_wave=32,
        lds_per_wave=2304,
        lds_cycles_per_instruction=8,
        lds_conflict_cycles_per_instruction=1,
        read_bytes=192 * _MIB,
        write_bytes=32 * _MIB,
        l1_bytes=2_080 * _MIB,
        l2_read_bytes=1_024 * _MIB,
        l2_write_bytes=32 * _MIB,
        waves_per_busy_cu=7.4,
        wait_share=0.38,
        issue_wait_share=0.24,
    ),
)

#: All pairs of 32768 bodies, split in 8: 4096 waves * 64 lanes * 4096 interactions * 19 FLOP = 20.4 GFLOP.
_FORCES = KernelModel(
    name="nbody_forces(float4 const*, float4*, int, float)",
    symbol="_Z12nbody_forcesPK15HIP_vector_typeIfLj4EEPS0_if",
    grid=(262_144, 1, 1),
    workgroup=(256, 1, 1),
    nominal_ns=396_000,
    arch_vgpr=40,
    sgpr=48,
    lds_bytes=4_096,
    work=WorkModel(
        valu_per_wave={
            "ADD_F32": 3 * 4096,
            "FMA_F32": 6 * 4096,
            "MUL_F32": 3 * 4096,
            "TRANS_F32": 4096,
            "INT32": 4096,
        },
        salu_per_wave=4_400,
        branch_per_wave=300,
        vmem_read_per_wave=17,
        vmem_write_per_wave=1,
        lds_per_wave=4_112,
        lds_cycles_per_instruction=2,
        read_bytes=6 * _MIB,
        write_bytes=4 * _MIB,
        l1_bytes=76 * _MIB,
        l2_read_bytes=72 * _MIB,
        l2_write_bytes=4 * _MIB,
        waves_per_busy_cu=13.1,
        wait_share=0.22,
        issue_wait_share=0.31,
    ),
)

#: Data-dependent branches leave 19 of 64 lanes active.
_CULL = KernelModel(
    name="void cull_particles<true>(Particle const*, unsigned int*, unsigned int*, float)",
    symbol="_Z14cull_particlesILb1EEvPK8ParticlePjS3_f",
    grid=(1 << 20, 1, 1),
    workgroup=(256, 1, 1),
    nominal_ns=96_000,
    arch_vgpr=24,
    sgpr=48,
    work=WorkModel(
        valu_per_wave={
            "ADD_F32": 420,
            "FMA_F32": 610,
            "MUL_F32": 380,
            "TRANS_F32": 60,
            "INT32": 540,
            "OTHER": 330,
        },
        salu_per_wave=610,
        branch_per_wave=240,
        vmem_read_per_wave=5,
        vmem_write_per_wave=1,
        atomics_per_wave=1,
        read_bytes=32 * _MIB,
        write_bytes=4 * _MIB,
        reads_of_128_bytes=0.5,
        l1_bytes=40 * _MIB,
        l2_read_bytes=34 * _MIB,
        l2_write_bytes=4 * _MIB,
        active_lanes=19.0,
        waves_per_busy_cu=22.0,
        wait_share=0.41,
        issue_wait_share=0.29,
    ),
)

#: One workgroup fills the LDS of a CU: one wave per SIMD, an eighth of what fits otherwise.
_STENCIL = KernelModel(
    name="stencil_tile(double const*, double*, int, int)",
    symbol="_Z12stencil_tilePKdPdii",
    grid=(2048, 512, 1),
    workgroup=(256, 1, 1),
    nominal_ns=118_000,
    arch_vgpr=56,
    sgpr=40,
    lds_bytes=49_152,
    dynamic_lds_bytes=16_384,
    work=WorkModel(
        valu_per_wave={"ADD_F64": 96, "FMA_F64": 144, "MUL_F64": 24, "INT32": 210, "INT64": 60, "OTHER": 20},
        salu_per_wave=90,
        branch_per_wave=20,
        vmem_read_per_wave=18,
        vmem_write_per_wave=8,
        lds_per_wave=180,
        lds_cycles_per_instruction=4,
        lds_conflict_cycles_per_instruction=2,
        read_bytes=72 * _MIB,
        write_bytes=64 * _MIB,
        l1_bytes=208 * _MIB,
        l2_read_bytes=96 * _MIB,
        l2_write_bytes=64 * _MIB,
        waves_per_busy_cu=3.9,
        wait_share=0.71,
        issue_wait_share=0.08,
    ),
)

#: Pointer chasing: all waves are resident and wait, neither bytes nor FLOPs come near a ceiling.
_LIST_RANK = KernelModel(
    name="list_rank(int const*, int*, int)",
    symbol="_Z9list_rankPKiPii",
    grid=(1 << 20, 1, 1),
    workgroup=(256, 1, 1),
    nominal_ns=141_000,
    arch_vgpr=8,
    sgpr=24,
    work=WorkModel(
        valu_per_wave={"INT32": 70, "INT64": 26, "OTHER": 13},
        salu_per_wave=27,
        branch_per_wave=13,
        vmem_read_per_wave=13,
        vmem_write_per_wave=1,
        read_bytes=96 * _MIB,
        write_bytes=4 * _MIB,
        reads_of_128_bytes=0.25,
        l1_bytes=56 * _MIB,
        l2_read_bytes=104 * _MIB,
        l2_write_bytes=4 * _MIB,
        waves_per_busy_cu=29.0,
        wait_share=0.96,
        issue_wait_share=0.01,
    ),
)

#: 4096 items: launching takes longer than running.
_BIAS = KernelModel(
    name="add_bias(float*, float const*, int)",
    symbol="_Z8add_biasPfPKfi",
    grid=(4096, 1, 1),
    workgroup=(256, 1, 1),
    nominal_ns=2_600,
    arch_vgpr=8,
    sgpr=16,
    work=WorkModel(
        valu_per_wave={"ADD_F32": 1, "INT32": 4, "INT64": 1},
        vmem_read_per_wave=2,
        vmem_write_per_wave=1,
        read_bytes=32_768,
        write_bytes=16_384,
        l1_bytes=49_152,
        l2_read_bytes=32_768,
        l2_write_bytes=16_384,
        busy_cus=16,
        waves_per_busy_cu=3.0,
        wait_share=0.9,
        issue_wait_share=0.02,
    ),
)

_MAIN, _SIDE, _AUX = 1, 2, 3

_TIME_STEP = (
    Launch(_TRIAD.name, _MAIN, times=2),
    Record("moved", _MAIN),
    Wait(_SIDE, "moved"),
    Launch(_FORCES.name, _SIDE),
    Launch(_CULL.name, _SIDE),
    Record("forces", _SIDE),
    Launch(_GEMM.name, _MAIN),
    Launch(_STENCIL.name, _AUX),
    Launch(_LIST_RANK.name, _AUX),
    Record("grid", _AUX),
    Wait(_MAIN, "forces"),
    Wait(_MAIN, "grid"),
    Launch(_BIAS.name, _MAIN, times=4),
    SyncStream(_MAIN),
    HostWork(12_000),
)

DEMO_APPLICATION: Final = Application(
    name="demo-particles",
    kernels=(_TRIAD, _GEMM, _FORCES, _CULL, _STENCIL, _LIST_RANK, _BIAS),
    streams=3,
    steps=(
        Allocate(1_024 * _MIB),
        Allocate(128 * _MIB),
        Copy("HtoD", 64 * _MIB, _MAIN),
        Copy("HtoD", 8 * _MIB, _SIDE),
        SyncStream(_MAIN),
        Repeat(4, _TIME_STEP),
        SyncDevice(),
        Copy("DtoH", 16 * _MIB, blocking=True),
    ),
)


def make_demo_contents(
    *, seed: str | int = 0, counters: tuple[str, ...] = (), pid: int = 4242, command: str = "./demo-particles"
) -> RocpdContents:
    """Return one recorded run of the demo: a trace, or with `counters` a counter run.

    Runs with different seeds differ by about one percent. `counters` must be among
    `counter_twin.available_counters()`, otherwise KeyError.
    """
    counting = bool(counters)
    collection = Collection(copies=not counting, hip_api=not counting, counters=counters)
    return record(DEMO_APPLICATION, ProcessIdentity(pid, command), collection, seed=seed)
