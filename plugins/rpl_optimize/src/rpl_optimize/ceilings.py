"""Ceilings measured on the user's own device: small kernels of known work, their rates, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_analysis.contracts import Limited, record
from rpl_core.errors import BadDataError
from rpl_core.files import write_atomic
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, DeviceModel, MemoryCeiling, Pipe
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording


_THREADS = 256
_CHAINS = 8
_LOADED_BYTES = 8 * 8  # of each work-item and iteration
_WAVES, _MATRIX_CHAINS = 4, 4
#: Above the peak by more than clocks can explain (chosen): not a rate, but work that was not done.
_ABOVE_PEAK = 1.05
#: The others are left out by the program where the GPU it was compiled for lacks their instruction.
_EVERYWHERE = (None, Pipe.VALU)


@frozen
class Sizes:
    """The words that the program is called with; ``mebibytes`` are those of each of its two buffers."""

    workgroups: int
    iterations: int
    mebibytes: int
    launches: int

    def words(self) -> tuple[str, ...]:
        return tuple(
            str(number) for number in (self.workgroups, self.iterations, self.mebibytes, self.launches)
        )


@frozen
class Benchmark:
    """A kernel of the program: ``pipe`` is that of arithmetic; without one it moves bytes.

    ``work`` is what a launch does for each iteration of a workgroup (FLOPs, bytes of the memory level
    ``what``); of one that ``streams``, for each byte of a buffer in main memory.
    """

    kernel: str
    what: str  # "F32", "l2", "copy"
    pipe: Pipe | None
    work: int
    streams: bool = False

    def work_of(self, sizes: Sizes) -> int:
        """FLOPs or bytes of one launch."""
        if self.streams:
            return self.work * sizes.mebibytes * 2**20
        return self.work * sizes.workgroups * sizes.iterations


def _fma(name: str, data_type: str, pipe: Pipe = Pipe.VALU, lanes: int = 1) -> Benchmark:
    return Benchmark(f"ceiling_{name}", data_type, pipe, _THREADS * _CHAINS * 2 * lanes)


def _mfma(data_type: str, m: int, n: int, k: int) -> Benchmark:
    work = _WAVES * _MATRIX_CHAINS * 2 * m * n * k
    return Benchmark(f"ceiling_mfma_{data_type.lower()}", data_type, Pipe.MFMA, work)


BENCHMARKS = (
    Benchmark("ceiling_write", "write", None, 1, streams=True),  # first: it fills the buffers' pages
    Benchmark("ceiling_copy", "copy", None, 2, streams=True),
    Benchmark("ceiling_read", "read", None, 1, streams=True),
    Benchmark("ceiling_l2", "l2", None, _THREADS * _LOADED_BYTES),
    Benchmark("ceiling_lds", "lds", None, _THREADS * _LOADED_BYTES),
    _fma("fma_f16", "F16"),
    _fma("fma_f32", "F32"),
    _fma("fma_f64", "F64"),
    _fma("pk_fma_f32", "F32", Pipe.VALU_PACKED, 2),
    _mfma("F16", 32, 32, 8),
    _mfma("BF16", 32, 32, 8),
    _mfma("F32", 32, 32, 2),
    _mfma("F64", 16, 16, 4),
    _mfma("I8", 32, 32, 16),
    _mfma("F8", 32, 32, 16),
)


@record
class Rate:
    """``best`` and ``slowest`` in GB/s or GFLOP/s over ``launches`` of ``work`` bytes or FLOPs each.

    ``refused`` says why it is no ceiling.
    """

    kernel: str
    what: str
    pipe: Pipe | None
    work: Annotated[int, Limited(gt=0)]
    launches: Annotated[int, Limited(gt=0)]
    best: Annotated[float, Limited(gt=0)]
    slowest: Annotated[float, Limited(gt=0)]
    refused: str | None = None


def benchmarks_for(device: DeviceModel) -> tuple[Benchmark, ...]:
    """The kernels of main memory, and those of levels and arithmetic that have a theoretical peak."""
    return tuple(b for b in BENCHMARKS if b.streams or _peak(b, device) is not None)


def rates_of(
    recording: Recording, wanted: tuple[Benchmark, ...], sizes: Sizes, device: DeviceModel
) -> tuple[Rate, ...]:
    """Work over the time between begin and end of each launch, of the kernels that the GPU has.

    Raises ``BadDataError`` where one did not run that every GPU has.
    """
    times = _durations(recording)
    missing = [b.kernel for b in wanted if b.pipe in _EVERYWHERE and not times.get(b.kernel)]
    if missing:
        raise BadDataError(
            f"the recording holds no launch of {', '.join(missing)}",
            cause="the collector lost launches, or the program ended early",
            next_step="run it again with --debug",
        )
    ran = (b for b in wanted if times.get(b.kernel))
    return tuple(_rate(b, times[b.kernel], sizes, device) for b in ran)


def _durations(recording: Recording) -> dict[str, list[int]]:
    durations: dict[str, list[int]] = {}
    for trace in recording.timing_runs:
        lasted = trace.dispatches.duration_ns().tolist()
        for kernel, duration in zip(trace.dispatches.kernel.tolist(), lasted, strict=True):
            durations.setdefault(trace.kernels[kernel].name.partition("(")[0], []).append(duration)
    return {name: [ns for ns in lasted if ns > 0] for name, lasted in durations.items()}


def _rate(benchmark: Benchmark, durations_ns: list[int], sizes: Sizes, device: DeviceModel) -> Rate:
    work = benchmark.work_of(sizes)
    best, slowest = work / min(durations_ns), work / max(durations_ns)  # per ns: GB/s and GFLOP/s
    peak = _peak(benchmark, device)
    refused = None
    if peak is not None and best > peak * _ABOVE_PEAK:
        refused = f"above the theoretical peak of {peak:,.10g}: the kernel did less than it should"
    return Rate(
        kernel=benchmark.kernel,
        what=benchmark.what,
        pipe=benchmark.pipe,
        work=work,
        launches=len(durations_ns),
        best=best,
        slowest=slowest,
        refused=refused,
    )


def _peak(benchmark: Benchmark, device: DeviceModel) -> float | None:
    """The theoretical peak, GB/s or GFLOP/s; ``None`` where the device model has none."""
    spec = CeilingOrigin.SPEC
    if benchmark.pipe is None:
        known = (c for c in device.memory_ceilings if c.origin is spec)
        return next((c.peak_gbps for c in known if benchmark.streams or c.level == benchmark.what), None)
    wanted = (benchmark.what, benchmark.pipe, spec)
    rates = (c for c in device.compute_ceilings if (c.data_type, c.pipe, c.origin) == wanted)
    return next((c.peak_gflops for c in rates), None)


# The file of the rates among the user's settings, by the name of the device.

_MAX_BYTES = 1 << 20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeptDevice(_Strict):
    """One benchmark of a device; only one of origin ``measured`` gives ceilings."""

    product: str
    architecture: str
    compute_units: int | None  # of the partition
    origin: Literal["measured", "modelled", "synthetic"]
    date: str
    rpl_version: str
    collector: str
    sizes: dict[str, int]
    rates: tuple[Rate, ...]


class KeptCeilings(_Strict):
    schema_version: Literal["1.0"] = "1.0"
    devices: dict[str, KeptDevice] = Field(default_factory=dict)


def read_kept(path: Path) -> KeptCeilings:
    """Nothing where there is no file. Raises ``BadDataError`` for one that can't be used."""
    remedy = "delete the file and run `rpl ceilings measure` again"
    if path.exists() and not path.is_file():  # a FIFO would be waited for
        raise BadDataError(f"the measured ceilings in {path} are no regular file", next_step=remedy)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES)
        return KeptCeilings.model_validate_json(content)  # what was cut off is no JSON
    except FileNotFoundError:
        return KeptCeilings()
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise BadDataError(
            f"the measured ceilings in {path} can't be read: {reason}",
            next_step=remedy,
        ) from error


def keep(name: str, device: KeptDevice, path: Path) -> bool:
    """Put it in the place of an earlier one, unless that was measured and this is not."""
    kept = read_kept(path)
    earlier = kept.devices.get(name)
    if earlier is not None and earlier.origin == "measured" != device.origin:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    devices = {**kept.devices, name: device}
    content = kept.model_copy(update={"devices": dict(sorted(devices.items()))}).model_dump(mode="json")
    write_atomic(path, json.dumps(content, indent=2) + "\n")
    return True


def ceilings_of(device: DeviceModel, path: Path) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    """What was measured on a device of this name: the best of copy, read and write is that of main memory."""
    kept = read_kept(path).devices.get(device.name)
    if kept is None or kept.origin != "measured":
        return ()
    if (kept.architecture, kept.compute_units) != (device.architecture, device.compute_units):
        return ()  # another partition
    return tuple(_ceilings(kept, device))


def _ceilings(kept: KeptDevice, device: DeviceModel) -> Iterator[ComputeCeiling | MemoryCeiling]:
    origin = CeilingOrigin.MEASURED
    usable = [rate for rate in kept.rates if rate.refused is None]
    levels = [c.level for c in device.memory_ceilings]  # the farthest is the first
    streams = [rate for rate in usable if rate.pipe is None and rate.what not in levels]
    if streams and levels:
        best = max(streams, key=lambda rate: rate.best)
        yield MemoryCeiling(levels[0], best.best, origin, _source(best, kept))
    for rate in usable:
        if rate.what in levels:
            yield MemoryCeiling(rate.what, rate.best, origin, _source(rate, kept))
        elif rate.pipe is not None:
            yield ComputeCeiling(rate.what, Pipe(rate.pipe), rate.best, origin, _source(rate, kept))


def _source(rate: Rate, kept: KeptDevice) -> str:
    spread = f"slowest {rate.slowest:,.6g}"
    made = f"rpl ceilings measure {kept.rpl_version}, {kept.date}"
    return f"{rate.kernel}, best of {rate.launches}, {spread}; {made}"
