"""The agents of a synthetic MI300X node: two CPUs and GPUs in SPX mode.

Field names and order follow the agent extdata of real files (docs/reference/formats.md, 2.6). Values are
those of a real MI325X agent row, the sister device with the same compute die, except device id, product and
memory (docs/reference/devices.md, 1: 29857; 1300 MHz x 32 B x 128 channels = 5324.8 GB/s; 192 GiB).
"""

from __future__ import annotations

from typing import Any, Final

from rpl_testkit.rocpd_writer.rows import AgentRow

__all__ = ["CAPABILITY_WORD", "CPU_COUNT", "GPU_AGENT", "mi300x_agents"]

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
