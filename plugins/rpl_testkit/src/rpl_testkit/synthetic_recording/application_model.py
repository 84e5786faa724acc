"""How a synthetic application is described: its kernels with the work they do, and its host program.

A description is a promise about counts (instructions, bytes, lanes); `timeline` gives it times and
`counter_formulas` the counter values a profiler would read.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from rpl_core.values import frozen

__all__ = [
    "Allocate",
    "Application",
    "Copy",
    "GraphLaunch",
    "HostWork",
    "KernelModel",
    "Launch",
    "Record",
    "Repeat",
    "Step",
    "SyncDevice",
    "SyncEvent",
    "SyncStream",
    "Wait",
    "WorkModel",
]


@frozen
class WorkModel:
    """Work of one dispatch. `*_per_wave` count wave instructions, `*_bytes` whole-dispatch traffic.

    `valu_per_wave` keys are counter endings (`FMA_F32`, `ADD_F64`, `INT32`, `INT64`, `CVT`) or `OTHER`.
    """

    valu_per_wave: Mapping[str, int] = attrs.field(factory=dict)
    mfma_type: str | None = None  # F16, BF16, F32, F64, F8, I8
    mfma_per_wave: int = 0
    mfma_flops: int = 16_384  # v_mfma_f32_32x32x8_f16: 2*32*32*8
    mfma_cycles: int = 32
    salu_per_wave: int = 8
    smem_per_wave: int = 2
    branch_per_wave: int = 1
    vmem_read_per_wave: int = 0
    vmem_write_per_wave: int = 0
    lds_per_wave: int = 0
    lds_cycles_per_instruction: int = 2
    lds_conflict_cycles_per_instruction: int = 0
    atomics_per_wave: int = 0
    read_bytes: int = 0  # from beyond the L2
    write_bytes: int = 0
    reads_of_128_bytes: float = 1.0  # share of read_bytes fetched by 128-byte requests
    l1_bytes: int = 0  # asked from the vector L1, reads and writes
    l2_read_bytes: int = 0
    l2_write_bytes: int = 0
    active_lanes: float = 64.0
    busy_cus: int = 304
    waves_per_busy_cu: float = 8.0
    wait_share: float = 0.5  # of wave cycles, waiting for a dependency
    issue_wait_share: float = 0.1


@frozen
class KernelModel:
    """A kernel: its symbol, resources, launch geometry (grid in work-items), work and usual duration."""

    name: str
    symbol: str
    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    nominal_ns: int
    work: WorkModel = WorkModel()
    arch_vgpr: int = 16
    accum_vgpr: int = 0
    sgpr: int = 32
    lds_bytes: int = 0
    dynamic_lds_bytes: int = 0
    scratch_bytes: int = 0
    kernarg_bytes: int = 64

    def work_items(self) -> int:
        """Return the number of work-items of a launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def waves(self) -> int:
        """Return the number of wave64s: per workgroup ceil(size / 64)."""
        size = self.workgroup[0] * self.workgroup[1] * self.workgroup[2]
        groups = 1
        for grid, workgroup in zip(self.grid, self.workgroup, strict=True):
            groups *= -(-grid // workgroup)
        return groups * -(-size // 64)


@frozen
class Launch:
    """hipLaunchKernel on a stream (0 is the null stream)."""

    kernel: str
    stream: int = 0
    times: int = 1


@frozen
class GraphLaunch:
    """hipGraphLaunch: all kernels share one correlation id and the launch stream."""

    kernels: tuple[str, ...]
    stream: int = 0


@frozen
class Copy:
    """hipMemcpyAsync, or hipMemcpy when `blocking`. Directions are `HtoD`, `DtoH`, `DtoD`."""

    direction: str
    size_bytes: int
    stream: int = 0
    blocking: bool = False


@frozen
class Allocate:
    """hipMalloc on the GPU."""

    size_bytes: int


@frozen
class Record:
    """hipEventRecord."""

    event: str
    stream: int


@frozen
class Wait:
    """hipStreamWaitEvent."""

    stream: int
    event: str


@frozen
class SyncStream:
    """hipStreamSynchronize."""

    stream: int


@frozen
class SyncEvent:
    """hipEventSynchronize."""

    event: str


@frozen
class SyncDevice:
    """hipDeviceSynchronize."""


@frozen
class HostWork:
    """Time that the host spends outside the runtime."""

    duration_ns: int


@frozen
class Repeat:
    """A loop in the host program."""

    times: int
    steps: tuple[Step, ...]


Step = (
    Launch
    | GraphLaunch
    | Copy
    | Allocate
    | Record
    | Wait
    | SyncStream
    | SyncEvent
    | SyncDevice
    | HostWork
    | Repeat
)


@frozen
class Application:
    """A program: `streams` explicit HIP streams (numbered from 1) and its steps."""

    name: str
    kernels: tuple[KernelModel, ...]
    steps: tuple[Step, ...]
    streams: int = 0
    clock_mhz: int = 2100

    def kernel(self, name: str) -> KernelModel:
        """Return the kernel called `name`; KeyError when the description lacks it."""
        return {kernel.name: kernel for kernel in self.kernels}[name]
