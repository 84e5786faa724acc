"""The options of rocprofv3, as data: names, kinds and choices.

Source: rocprofiler-sdk 1.0 rocprofv3 argument parser and change logs of later releases. Options without
effect here are listed too, so that a misspelt option fails as it does in reality.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BOOLEAN_OPTIONS",
    "LATER_BOOLEAN_OPTIONS",
    "RUNTIME_TRACE",
    "SYS_TRACE",
    "TRACE_OPTIONS",
    "VALUE_OPTIONS",
]

#: Options that switch a kind of recording on.
TRACE_OPTIONS: Final = (
    "kernel_trace",
    "memory_copy_trace",
    "memory_allocation_trace",
    "scratch_memory_trace",
    "hip_trace",
    "hip_runtime_trace",
    "hip_compiler_trace",
    "hsa_trace",
    "hsa_core_trace",
    "hsa_amd_trace",
    "hsa_image_trace",
    "hsa_finalizer_trace",
    "marker_trace",
    "rccl_trace",
    "kokkos_trace",
    "rocdecode_trace",
    "rocjpeg_trace",
)

#: What -r switches on, and what -s adds.
RUNTIME_TRACE: Final = (
    "hip_runtime_trace",
    "marker_trace",
    "kernel_trace",
    "memory_copy_trace",
    "memory_allocation_trace",
    "scratch_memory_trace",
    "rccl_trace",
    "rocdecode_trace",
    "rocjpeg_trace",
)
SYS_TRACE: Final = (
    *RUNTIME_TRACE,
    "hip_compiler_trace",
    "hsa_core_trace",
    "hsa_amd_trace",
    "hsa_image_trace",
    "hsa_finalizer_trace",
)

#: Switches with an optional yes/no value.
BOOLEAN_OPTIONS: Final = (
    ("-r", "--runtime-trace"),
    ("-s", "--sys-trace"),
    *((f"--{name.replace('_', '-')}",) for name in TRACE_OPTIONS),
    ("--output-config",),
    ("--pc-sampling-beta-enabled",),
    ("--stats",),
    ("-S", "--summary"),
    ("-D", "--summary-per-domain"),
    ("-M", "--mangled-kernels"),
    ("-T", "--truncate-kernels"),
    ("--kernel-rename",),
    ("--selected-regions",),
    ("-L", "--list-avail"),
    ("--group-by-queue",),
    ("--readlink",),
    ("--realpath",),
    ("--suppress-marker-preload",),
    ("--echo",),
    ("--disable-signal-handlers",),
    ("--advanced-thread-trace", "--att"),
    ("--att-serialize-all",),
)
#: Switches of SDK 1.3 (ROCm 7.13).
LATER_BOOLEAN_OPTIONS: Final = (("--kfd-trace",), ("--hip-graph-trace",))

#: Options with values: names and number of values as argparse counts them.
VALUE_OPTIONS: Final[tuple[tuple[tuple[str, ...], str | None], ...]] = (
    (("-i", "--input"), None),
    (("-E", "--extra-counters"), None),
    (("--summary-groups",), "+"),
    (("--summary-output-file",), None),
    (("-u", "--summary-units"), None),
    (("--kernel-include-regex",), None),
    (("--kernel-exclude-regex",), None),
    (("--kernel-iteration-range",), "+"),
    (("-P", "--collection-period"), "+"),
    (("--collection-period-unit",), None),
    (("--perfetto-backend",), None),
    (("--perfetto-buffer-size",), None),
    (("--perfetto-buffer-fill-policy",), None),
    (("--perfetto-shmem-size-hint",), None),
    (("--preload",), "*"),
    (("--rocm-root",), None),
    (("--sdk-soversion",), None),
    (("--sdk-version",), None),
    (("--benchmark-mode",), None),
    (("--minimum-output-data",), None),
    (("-p", "--pid"), "+"),
    (("--att-library-path",), "+"),
    (("--att-target-cu",), None),
    (("--att-simd-select",), None),
    (("--att-buffer-size",), None),
    (("--att-shader-engine-mask",), None),
    (("--att-gpu-index",), None),
    (("--att-perfcounters",), None),
    (("--att-perfcounter-ctrl",), None),
    (("--att-activity",), None),
)
