"""The agents of a synthetic MI300X node: two CPUs and GPUs in SPX mode.

Field names and order follow the agent extdata of real files (docs/reference/formats.md, 2.6). Values are
those of a real MI325X agent row, the sister device with the same compute die, except device id, product and
memory (docs/reference/devices.md, 1: 29857; 1300 MHz x 32 B x 128 channels = 5324.8 GB/s; 192 GiB).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.rows import AgentRow, CounterDefinitionRow, CounterRow

if TYPE_CHECKING:
    from rpl_testkit.synthetic_recording.application_model import KernelModel, WorkModel

CPU_COUNT: Final = 2
#: Absolute index of the first GPU: it follows the CPUs.
GPU_AGENT: Final = CPU_COUNT

#: The capability word of a real MI325X (agent CSV); extdata shows its bits by name.
CAPABILITY_WORD: Final = 746037888
#: Bits from the lowest; numbers are widths, one where absent (real gfx1250 extdata, in this order).
_CAPABILITY_BITS = (
    "HotPluggable HSAMMUPresent SharedWithGraphics QueueSizePowerOfTwo QueueSize32bit QueueIdleEvent VALimit "
    "WatchPointsSupported WatchPointsTotalBits:4 DoorbellType:2 AQLQueueDoubleMap DebugTrapSupported "
    "WaveLaunchTrapOverrideSupported WaveLaunchModeSupported PreciseMemoryOperationsSupported "
    "DEPRECATED_SRAM_EDCSupport Mem_EDCSupport RASEventNotify ASICRevision:4 SRAM_EDCSupport SVMAPISupported "
    "CoherentHostAccess DebugSupportedFirmware"
)


def _capability(word: int) -> dict[str, int]:
    fields = {}
    for entry in _CAPABILITY_BITS.split():
        name, _, width = entry.partition(":")
        fields[name] = word & ((1 << int(width or 1)) - 1)
        word >>= int(width or 1)
    return fields


_CPU_NAME = "AMD EPYC 9575F 64-Core Processor"
_ZERO_FIELDS = (
    "cpu_cores_count simd_count mem_banks_count caches_count io_links_count cpu_core_id_base simd_id_base "
    "max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size num_xcc cu_count array_count "
    "num_shader_banks simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu "
    "gfx_target_version vendor_id device_id location_id domain drm_render_minor num_sdma_engines "
    "num_sdma_xgmi_engines num_sdma_queues_per_engine num_cp_queues max_engine_clk_ccompute "
    "max_engine_clk_fcompute sdma_fw_version fw_version capability cu_per_engine max_waves_per_cu family_id "
    "workgroup_max_size grid_max_size local_mem_size hive_id gpu_id"
)
_GPU_FIELDS: Final[dict[str, Any]] = {
    "simd_count": 1216,
    "mem_banks_count": 1,
    "simd_id_base": 2147487744,
    "max_waves_per_simd": 8,
    "lds_size_in_kb": 64,
    "num_gws": 64,
    "wave_front_size": 64,
    "num_xcc": 8,
    "cu_count": 304,
    "array_count": 32,
    "num_shader_banks": 32,
    "simd_arrays_per_engine": 1,
    "cu_per_simd_array": 10,
    "simd_per_cu": 4,
    "max_slots_scratch_cu": 32,
    "gfx_target_version": 90402,
    "vendor_id": 4098,
    "device_id": 29857,
    "drm_render_minor": 128,
    "num_sdma_engines": 2,
    "num_sdma_xgmi_engines": 14,
    "num_sdma_queues_per_engine": 8,
    "num_cp_queues": 24,
    "max_engine_clk_ccompute": 5008,
    "max_engine_clk_fcompute": 2100,
    "sdma_fw_version": {"uCodeSDMA": 22, "uCodeRes": 0},
    "fw_version": {"uCode": 166, "Major": 0, "Minor": 0, "Stepping": 0},
    "capability": _capability(CAPABILITY_WORD),
    "cu_per_engine": 9,
    "max_waves_per_cu": 32,
    "family_id": 141,
    "workgroup_max_size": 1024,
    "grid_max_size": 4294967295,
    # Zero in real files too: the size is in mem_banks.
    "local_mem_size": 0,
}


def _extdata(
    index: int, type_index: int, kind: int, own: dict[str, Any], names: tuple[str, str, str]
) -> dict[str, Any]:
    is_gpu = kind == 2
    name, vendor, product = names
    largest = 1024 if is_gpu else 0
    return {
        "size": 312,
        "id": {"handle": 14915 + index},
        "type": kind,
        **dict.fromkeys(_ZERO_FIELDS.split(), 0),
        "sdma_fw_version": {"uCodeSDMA": 0, "uCodeRes": 0},
        "fw_version": {"uCode": 0, "Major": 0, "Minor": 0, "Stepping": 0},
        "capability": _capability(0),
        **own,
        "workgroup_max_dim": dict.fromkeys("xyz", largest),
        "grid_max_dim": dict.fromkeys("xyz", 4294967295 if is_gpu else 0),
        "name": name,
        "vendor_name": vendor,
        "product_name": product,
        "model_name": "ip discovery" if is_gpu else "",
        "node_id": index,
        "logical_node_id": index,
        "logical_node_type_id": type_index,
        "runtime_visibility": dict.fromkeys(("hsa", "hip", "rccl", "rocdecode"), 1),
        "uuid": {"bytes": {f"value{i}": 0 for i in range(16)}},
        "mem_banks": [_memory(is_gpu=is_gpu)],
        "caches": [],
        "io_links": [],
        "gpu_index": type_index if is_gpu else -1,
    }


def _memory(*, is_gpu: bool) -> dict[str, Any]:
    flags = {"HotPluggable": 0, "NonVolatile": 0}
    if is_gpu:
        return {
            "heap_type": 1,
            "flags": flags,
            "width": 8192,
            "mem_clk_max": 1300,
            "size_in_bytes": 192 << 30,
        }
    return {"heap_type": 0, "flags": flags, "width": 64, "mem_clk_max": 6400, "size_in_bytes": 768 << 30}


def _cpu(index: int) -> AgentRow:
    own = {"cpu_cores_count": 128, "cu_count": 128, "num_xcc": 1, "max_engine_clk_ccompute": 5008}
    return AgentRow(
        index=index,
        kind="CPU",
        name=_CPU_NAME,
        product_name=_CPU_NAME,
        vendor_name="CPU",
        type_index=index,
        extdata=_extdata(index, index, 1, own, (_CPU_NAME, "CPU", _CPU_NAME)),
    )


def _gpu(index: int) -> AgentRow:
    type_index = index - CPU_COUNT
    product = "AMD Instinct MI300X"
    own = {**_GPU_FIELDS, "location_id": 1280 * (type_index + 1), "gpu_id": 9091 + type_index}
    return AgentRow(
        index=index,
        kind="GPU",
        name="gfx942",
        product_name=product,
        model_name="ip discovery",
        device_id=29857,
        type_index=type_index,
        extdata=_extdata(index, type_index, 2, own, ("gfx942", "AMD", product)),
    )


def mi300x_agents(gpus: int = 1) -> tuple[AgentRow, ...]:
    """Return the agents of a node with `gpus` MI300X; GPU k has absolute index `GPU_AGENT + k`."""
    return (*map(_cpu, range(CPU_COUNT)), *map(_gpu, range(CPU_COUNT, CPU_COUNT + gpus)))


# Counters of a synthetic dispatch, from the work it was declared to do, as a profiler would record them.

_VALU_TYPES = ("F16", "F32", "F64")
_MFMA_TYPES = ("F16", "BF16", "F32", "F64", "F8", "I8")
#: Counting windows of real runs start before and end after the kernel (docs/reference/counters.md, 1.4).
_WINDOW_EXTRA_CYCLES = 15_000


@frozen
class DispatchLoad:
    """One dispatch as the formulas see it."""

    kernel: KernelModel
    duration_ns: int
    clock_mhz: int

    @property
    def work(self) -> WorkModel:
        return self.kernel.work

    @property
    def waves(self) -> int:
        return self.kernel.waves()

    @property
    def cycles(self) -> float:
        return self.duration_ns * self.clock_mhz / 1_000

    @property
    def busy_cu_quads(self) -> float:
        return self.work.busy_cus * self.cycles / 4

    @property
    def wave_quads(self) -> float:
        return self.work.waves_per_busy_cu * self.busy_cu_quads


def _per_wave(field: str) -> Callable[[DispatchLoad], float]:
    return lambda load: float(load.waves * getattr(load.work, field))


def _valu(ending: str) -> Callable[[DispatchLoad], float]:
    return lambda load: float(load.waves * load.work.valu_per_wave.get(ending, 0))


def _all_valu(load: DispatchLoad) -> float:
    """SQ_INSTS_VALU includes MFMA (docs/reference/counters.md, 2.4)."""
    return float(load.waves * (sum(load.work.valu_per_wave.values()) + load.work.mfma_per_wave))


def _mfma(mfma_type: str, per_instruction: Callable[[WorkModel], int]) -> Callable[[DispatchLoad], float]:
    def total(load: DispatchLoad) -> float:
        if load.work.mfma_type != mfma_type:
            return 0.0
        return float(load.waves * load.work.mfma_per_wave * per_instruction(load.work))

    return total


def _all_instructions(load: DispatchLoad) -> float:
    work = load.work
    other = work.salu_per_wave + work.smem_per_wave + work.branch_per_wave + work.lds_per_wave
    return _all_valu(load) + load.waves * (other + _vmem_per_wave(work) + 1)  # 1: s_endpgm


def _vmem_per_wave(work: WorkModel) -> int:
    return work.vmem_read_per_wave + work.vmem_write_per_wave + work.atomics_per_wave


def _read_requests(load: DispatchLoad) -> tuple[int, int]:
    """128-byte and 64-byte reads that together fetch `read_bytes`."""
    large = int(load.work.read_bytes * load.work.reads_of_128_bytes) // 128
    return large, -(-(load.work.read_bytes - 128 * large) // 64)


def _l2_requests(load: DispatchLoad) -> float:
    work = load.work
    return work.l2_read_bytes // 128 + work.l2_write_bytes // 64 + load.waves * work.atomics_per_wave


def _l2_misses(load: DispatchLoad) -> float:
    """One miss per 128-byte line that comes from or goes to memory, at most all requests."""
    lines = (load.work.read_bytes + load.work.write_bytes) // 128
    return min(float(lines), _l2_requests(load))


def _lds_cycles(load: DispatchLoad) -> float:
    work = load.work
    each = work.lds_cycles_per_instruction + work.lds_conflict_cycles_per_instruction
    return float(load.waves * work.lds_per_wave * each)


_FORMULAS: Final[dict[str, Callable[[DispatchLoad], float]]] = {
    "SQ_WAVES": lambda load: float(load.waves),
    "SQ_ITEMS": lambda load: float(load.kernel.work_items()),
    "SQ_INSTS": _all_instructions,
    "SQ_INSTS_VALU": _all_valu,
    **{
        f"SQ_INSTS_VALU_{op}_{kind}": _valu(f"{op}_{kind}")
        for op in ("ADD", "MUL", "FMA", "TRANS")
        for kind in _VALU_TYPES
    },
    **{f"SQ_INSTS_VALU_{ending}": _valu(ending) for ending in ("INT32", "INT64", "CVT")},
    **{f"SQ_INSTS_VALU_MFMA_{kind}": _mfma(kind, lambda _: 1) for kind in _MFMA_TYPES},
    **{f"SQ_INSTS_VALU_MFMA_MOPS_{kind}": _mfma(kind, lambda w: w.mfma_flops // 512) for kind in _MFMA_TYPES},
    "SQ_INSTS_MFMA": _per_wave("mfma_per_wave"),
    "SQ_INSTS_SALU": _per_wave("salu_per_wave"),
    "SQ_INSTS_SMEM": _per_wave("smem_per_wave"),
    "SQ_INSTS_BRANCH": _per_wave("branch_per_wave"),
    "SQ_INSTS_LDS": _per_wave("lds_per_wave"),
    "SQ_INSTS_VMEM_RD": _per_wave("vmem_read_per_wave"),
    "SQ_INSTS_VMEM_WR": lambda load: float(
        load.waves * (load.work.vmem_write_per_wave + load.work.atomics_per_wave)
    ),
    "SQ_INSTS_VMEM": lambda load: float(load.waves * _vmem_per_wave(load.work)),
    # One quad per wave instruction: 98304 = 16384 waves * 6 in the vecCopy recording.
    "SQ_ACTIVE_INST_VALU": _all_valu,
    "SQ_ACTIVE_INST_ANY": _all_instructions,
    "SQ_THREAD_CYCLES_VALU": lambda load: load.work.active_lanes * _all_valu(load),
    "SQ_BUSY_CU_CYCLES": lambda load: load.busy_cu_quads,
    "SQ_WAVE_CYCLES": lambda load: load.wave_quads,
    "SQ_WAIT_ANY": lambda load: load.work.wait_share * load.wave_quads,
    "SQ_WAIT_INST_ANY": lambda load: load.work.issue_wait_share * load.wave_quads,
    "SQ_BUSY_CYCLES": lambda load: 32 * load.cycles,  # plain cycles of 32 shader engines
    "SQ_VALU_MFMA_BUSY_CYCLES": lambda load: float(
        load.waves * load.work.mfma_per_wave * load.work.mfma_cycles
    ),
    "SQ_LDS_IDX_ACTIVE": _lds_cycles,
    "SQ_LDS_BANK_CONFLICT": lambda load: float(
        load.waves * load.work.lds_per_wave * load.work.lds_conflict_cycles_per_instruction
    ),
    # TCC_EA0_RDREQ includes the 128-byte reads, which TCC_BUBBLE counts (docs/reference/counters.md, 3.1).
    "TCC_EA0_RDREQ": lambda load: float(sum(_read_requests(load))),
    "TCC_EA0_RDREQ_32B": lambda _: 0.0,
    "TCC_EA0_RDREQ_DRAM": lambda load: float(sum(_read_requests(load))),
    "TCC_BUBBLE": lambda load: float(_read_requests(load)[0]),
    "TCC_EA0_WRREQ": lambda load: float(load.work.write_bytes // 64),
    "TCC_EA0_WRREQ_64B": lambda load: float(load.work.write_bytes // 64),
    "TCC_EA0_ATOMIC": lambda _: 0.0,
    "TCC_REQ": _l2_requests,
    "TCC_READ": lambda load: float(load.work.l2_read_bytes // 128),
    "TCC_WRITE": lambda load: float(load.work.l2_write_bytes // 64),
    "TCC_ATOMIC": _per_wave("atomics_per_wave"),
    "TCC_MISS": _l2_misses,
    "TCC_HIT": lambda load: _l2_requests(load) - _l2_misses(load),
    "TCP_TOTAL_CACHE_ACCESSES": lambda load: float(load.work.l1_bytes // 32),
    "TCP_TOTAL_ACCESSES": lambda load: 64.0 * load.waves * _vmem_per_wave(load.work),
    "TCP_TCC_READ_REQ": lambda load: float(load.work.l2_read_bytes // 128),
    "TCP_TCC_WRITE_REQ": lambda load: float(load.work.l2_write_bytes // 64),
    "TCP_TCC_ATOMIC_WITH_RET_REQ": lambda _: 0.0,
    "TCP_TCC_ATOMIC_WITHOUT_RET_REQ": _per_wave("atomics_per_wave"),
    "TA_TOTAL_WAVEFRONTS": lambda load: float(load.waves * _vmem_per_wave(load.work)),
    "GRBM_GUI_ACTIVE": lambda load: load.cycles + _WINDOW_EXTRA_CYCLES,
    "GRBM_COUNT": lambda load: load.cycles + _WINDOW_EXTRA_CYCLES + 2_000,
}

#: Counters whose formula is the cycle count of each instance, not a total to divide.
PER_INSTANCE_CYCLES: Final = frozenset({"GRBM_GUI_ACTIVE", "GRBM_COUNT"})


def counter_names() -> tuple[str, ...]:
    """Return the basic counters that have a formula, sorted."""
    return tuple(sorted(_FORMULAS))


def counter_total(name: str, load: DispatchLoad) -> float:
    """Return the device total of `name` (cycles of one instance for `PER_INSTANCE_CYCLES`)."""
    return float(round(_FORMULAS[name](load)))


# Counter rows as a profiler would record them: one value per hardware instance, plus derived ones.
#
# Instances of an MI300X in SPX mode (docs/reference/counters.md, 1.2): GRBM 8 XCDs, SQ 32 shader engines,
# TCC 128 channels, TCP and TA one per CU. Derived counters (`*_sum`, FETCH_SIZE, WRITE_SIZE) have one
# value.

_INSTANCES: Final = {"GRBM": 8, "SQ": 32, "TCC": 128, "TCP": 304, "TA": 304}
#: Blocks of which the SDK offers `X_sum` for a basic counter X; of SQ there is only SQ_WAVES_sum.
_SUMMED_BLOCKS: Final = ("TCC", "TCP", "TA")
_DERIVED_SIZES: Final = {
    "FETCH_SIZE": ("TCC_BUBBLE", "TCC_EA0_RDREQ", "TCC_EA0_RDREQ_32B"),
    "WRITE_SIZE": ("TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"),
}


def counter_block(name: str) -> str:
    """Return the hardware block that counts `name` (SQC shares SQ)."""
    return name.split("_", 1)[0]


def base_counters(name: str) -> tuple[str, ...]:
    """Return the basic counters that have to be programmed to read `name`."""
    if name in _DERIVED_SIZES:
        return _DERIVED_SIZES[name]
    return (name[:-4],) if name.endswith("_sum") else (name,)


def available_counters() -> tuple[str, ...]:
    """Return every counter the synthetic device offers, sorted."""
    basic = counter_names()
    summed = [f"{name}_sum" for name in basic if counter_block(name) in _SUMMED_BLOCKS]
    return tuple(sorted({*basic, *summed, "SQ_WAVES_sum", *_DERIVED_SIZES}))


def counter_definition(name: str, agent: int) -> CounterDefinitionRow:
    """Describe `name` for the counter table of a recording."""
    bases = base_counters(name)
    derived = bases != (name,)
    return CounterDefinitionRow(
        name=name,
        agent=agent,
        block="" if derived else counter_block(name),
        description=f"synthetic {name}",
        expression=f"reduce({bases[0]},sum)" if name.endswith("_sum") else "",
        is_derived=derived,
    )


def counter_row(dispatch_id: int, name: str, load: DispatchLoad) -> CounterRow:
    """Return the recorded values of `name` for one dispatch; KeyError for an unknown counter."""
    return CounterRow(dispatch_id, name, _values(name, load))


def _values(name: str, load: DispatchLoad) -> tuple[float, ...]:
    if name == "FETCH_SIZE":
        large, every, small = (counter_total(name, load) for name in _DERIVED_SIZES["FETCH_SIZE"])
        return ((128 * large + 64 * (every - large - small) + 32 * small) / 1024,)
    if name == "WRITE_SIZE":
        return (_write_bytes(load) / 1024,)
    if name.endswith("_sum"):
        return (counter_total(name[:-4], load),)
    total, instances = counter_total(name, load), _INSTANCES[counter_block(name)]
    if name in PER_INSTANCE_CYCLES:
        return (total,) * instances
    each, rest = divmod(int(total), instances)
    return tuple(float(each + (i < rest)) for i in range(instances))


def _write_bytes(load: DispatchLoad) -> float:
    every, full = (counter_total(name, load) for name in _DERIVED_SIZES["WRITE_SIZE"])
    return 64 * full + 32 * (every - full)
