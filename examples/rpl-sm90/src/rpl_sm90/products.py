"""H100 SXM and H200 SXM: limits of a streaming multiprocessor, and ceilings.

rpl's words: a compute unit is an SM, a SIMD one of its four sub-partitions, a wave a warp, LDS shared memory,
and a vector register of a wave one of the registers of a thread. "mfma" are the tensor cores.
"""

from __future__ import annotations

from functools import partial

from rpl_core.model.device import (
    Architecture,
    CeilingOrigin,
    ComputeCeiling,
    CounterMap,
    DeviceModel,
    Formula,
    MemoryCeiling,
    OccupancyLimits,
    Pipe,
    Quantity,
    RegisterFile,
)
from rpl_core.model.metric import Exactness
from rpl_core.model.trace import Agent

ARCHITECTURE = "sm_90"
WARP = 32
SMS = 132
#: Registers are handed out in steps of 256 per warp, 8 per thread (CUDA's cuda_occupancy.h).
REGISTER_GRANULE = 8
#: CUDA keeps 1 KiB of shared memory of every block for itself.
RESERVED_SHARED_BYTES = 1024
SHARED_BYTES_PER_SM = 228 << 10
_LIMITS = (
    "CUDA C++ Programming Guide 13.0, technical specifications per compute capability 9.0"
    " (https://docs.nvidia.com/cuda/cuda-c-programming-guide/)"
)
#: The highest SM clock that nvidia-smi shows for "NVIDIA H100 80GB HBM3". 132 SMs x 128 lanes x 2 x 1.98 GHz
#: are the 67 TFLOPS of the data sheet.
_CLOCK_MHZ = 1980.0

SM90 = Architecture(
    name=ARCHITECTURE,
    occupancy=OccupancyLimits(
        register_files=(
            RegisterFile(wave_size=WARP, registers=512, granule=REGISTER_GRANULE, most_used=255),
        ),
        scalar_file=None,
        has_accum_vgprs=False,
        waves_per_simd=16,
        simds_per_cu=4,
        workgroup_slots_per_cu=32,
        lds_bytes_per_cu=SHARED_BYTES_PER_SM,
        lds_granule_bytes=128,
        max_lds_bytes_per_workgroup=SHARED_BYTES_PER_SM,
        max_workgroup_size=1024,
        slot_per_wave=True,
        source=_LIMITS,
    ),
    source=_LIMITS,
)

_H100_PAGE = "NVIDIA H100 Tensor Core GPU, data sheet, SXM (https://www.nvidia.com/en-us/data-center/h100/)"
_H200_PAGE = "NVIDIA H200 Tensor Core GPU, data sheet, SXM (https://www.nvidia.com/en-us/data-center/h200/)"
_DENSE = "half of the figure with sparsity"
#: Data type, pipe, TFLOPS or TOPS, what was done to the figure of the data sheet.
_RATES = (
    ("F64", Pipe.VALU, 34.0, ""),
    ("F32", Pipe.VALU, 67.0, ""),
    ("F64", Pipe.MFMA, 67.0, ""),
    ("XF32", Pipe.MFMA, 494.5, _DENSE),
    ("F16", Pipe.MFMA, 989.5, _DENSE),
    ("BF16", Pipe.MFMA, 989.5, _DENSE),
    ("F8", Pipe.MFMA, 1979.0, _DENSE),
    ("I8", Pipe.MFMA, 1979.0, _DENSE),
)


def _compute(page: str) -> tuple[ComputeCeiling, ...]:
    return tuple(
        ComputeCeiling(
            kind, pipe, tera * 1000, CeilingOrigin.SPEC, ", ".join(part for part in (page, done) if part)
        )
        for kind, pipe, tera, done in _RATES
    )


def _memory(page: str, hbm_gbps: float) -> tuple[MemoryCeiling, ...]:
    shared = SMS * 128 * _CLOCK_MHZ / 1000
    source = f"32 banks of 4 bytes per clock and SM, at {_CLOCK_MHZ:g} MHz; {_LIMITS}"
    return (
        MemoryCeiling("hbm", hbm_gbps, CeilingOrigin.SPEC, page),
        MemoryCeiling("lds", shared, CeilingOrigin.SPEC, source, on_engine_clock=True),
    )


_METRICS = (
    "Nsight Compute 2025.3, Kernel Profiling Guide, metrics reference"
    " (https://docs.nvidia.com/nsight-compute/ProfilingGuide/)"
)
_COLD = "ncu empties the caches before each kernel, so what earlier kernels left there is read again"
_NO_TENSOR = "operations of the tensor cores are not counted"
_OPERATION = "smsp__sass_thread_inst_executed_op_{}_pred_on"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"


def _flops(letter: str) -> str:
    """Of all threads that took part: an fma is two operations."""
    add, multiply, both = (_OPERATION.format(letter + word) for word in ("add", "mul", "fma"))
    return f"{add} + {multiply} + 2 * {both}"


def _bytes(what: str) -> Quantity:
    formula = Formula(f"dram__bytes_{what}", Exactness.ESTIMATE, _METRICS, note=_COLD)
    return Quantity(f"hbm_{what}_bytes", "B", (formula,))


COUNTERS = CounterMap(
    quantities=(
        _bytes("read"),
        _bytes("write"),
        Quantity("hbm_bytes", "B", sum_of=("hbm_read_bytes", "hbm_write_bytes")),
        *(
            Quantity(
                f"valu_flops_{kind}",
                "FLOP",
                (Formula(_flops(letter), Exactness.EXACT, _METRICS, note=_NO_TENSOR),),
            )
            for kind, letter in (("f64", "d"), ("f32", "f"))
        ),
        Quantity(
            "lds_bank_conflicts_per_access",
            "conflict",
            (Formula(f"{_CONFLICTS} / ({_WAVEFRONTS} - {_CONFLICTS})", Exactness.EXACT, _METRICS),),
            additive=False,
        ),
    ),
    recommended=(
        *("dram__bytes_read", "dram__bytes_write", _CONFLICTS, _WAVEFRONTS),
        *(_OPERATION.format(letter + word) for letter in "df" for word in ("add", "mul", "fma")),
    ),
)

_device = partial(
    DeviceModel,
    architecture=ARCHITECTURE,
    compute_units=SMS,
    xcd_count=None,
    simd_per_cu=4,
    wave_size=WARP,
    max_waves_per_simd=16,
    lds_bytes_per_cu=SHARED_BYTES_PER_SM,
    clock_mhz=_CLOCK_MHZ,
    l2_bytes=50 << 20,
    llc_bytes=None,
    l2_channels=None,
    fp32_valu_width=None,
    counter_map=COUNTERS,
    unknown_facts=(
        "xcd_count: one die",
        "llc_bytes: no cache behind L2",
        "l2_channels: not public",
        "fp32_valu_width: no counter needs it",
    ),
    architecture_facts=SM90,
)

H100 = _device(
    name="h100",
    product="NVIDIA H100 SXM",
    chip_ids=(0x2330,),
    compute_ceilings=_compute(_H100_PAGE),
    memory_ceilings=_memory(_H100_PAGE, 3350.0),
    source=_H100_PAGE,
)
H200 = _device(
    name="h200",
    product="NVIDIA H200 SXM",
    chip_ids=(0x2335,),
    compute_ceilings=_compute(_H200_PAGE),
    memory_ceilings=_memory(_H200_PAGE, 4800.0),
    source=_H200_PAGE,
)


def detected(agents: tuple[Agent, ...]) -> DeviceModel | None:
    """H100 or H200, SXM, by name and number of SMs: PCIe and NVL cards have other rates or memory."""
    gpus = [agent for agent in agents if agent.kind == "GPU" and agent.architecture == ARCHITECTURE]
    found = {_of(agent) for agent in gpus}
    known = [device for device in (H100, H200) if found == {device.name}]
    return known[0] if known else None


def _of(agent: Agent) -> str | None:
    name = agent.product or ""
    if agent.compute_units != SMS or "NVL" in name or "PCIe" in name:
        return None
    return next((device.name for device in (H100, H200) if name.split()[1:2] == [device.name.upper()]), None)
