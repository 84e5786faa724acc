"""Ceilings that were measured on the user's own device: the rates of known work, and where they are kept."""

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
from rpl_optimize.ceilings import kept_path

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
        return tuple(str(one) for one in (self.workgroups, self.iterations, self.mebibytes, self.launches))


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
    return tuple(one for one in BENCHMARKS if one.streams or _peak(one, device) is not None)


def rates_of(
    recording: Recording, wanted: tuple[Benchmark, ...], sizes: Sizes, device: DeviceModel
) -> tuple[Rate, ...]:
    """Work over the time between begin and end of each launch, of the kernels that the GPU has.

    Raises ``BadDataError`` where one did not run that every GPU has.
    """
    times = _durations(recording)
    missing = [one.kernel for one in wanted if one.pipe in _EVERYWHERE and not times.get(one.kernel)]
    if missing:
        raise BadDataError(
            f"the recording holds no launch of {', '.join(missing)}",
            cause="the collector lost launches, or the program ended early",
            next_step="run it again with --debug",
        )
    ran = (one for one in wanted if times.get(one.kernel))
    return tuple(_rate(one, times[one.kernel], sizes, device) for one in ran)


def _durations(recording: Recording) -> dict[str, list[int]]:
    durations: dict[str, list[int]] = {}
    for trace in recording.timing_runs:
        lasted = trace.dispatches.duration_ns().tolist()
        for kernel, duration in zip(trace.dispatches.kernel.tolist(), lasted, strict=True):
            durations.setdefault(trace.kernels[kernel].name.partition("(")[0], []).append(duration)
    return {name: [one for one in lasted if one > 0] for name, lasted in durations.items()}


def _rate(one: Benchmark, durations: list[int], sizes: Sizes, device: DeviceModel) -> Rate:
    work = one.work_of(sizes)
    best, peak = work / min(durations), _peak(one, device)  # per ns: GB/s and GFLOP/s
    refused = None
    if peak is not None and best > peak * _ABOVE_PEAK:
        refused = f"above the theoretical peak of {peak:,.10g}: the kernel did less than it should"
    return Rate(one.kernel, one.what, one.pipe, work, len(durations), best, work / max(durations), refused)


def _peak(one: Benchmark, device: DeviceModel) -> float | None:
    return next(_peaks(one, device), None)


def _peaks(one: Benchmark, device: DeviceModel) -> Iterator[float]:
    spec = CeilingOrigin.SPEC
    if one.pipe is None:
        known = (c for c in device.memory_ceilings if c.origin is spec)
        yield from (c.peak_gbps for c in known if one.streams or c.level == one.what)
        return
    wanted = (one.what, one.pipe, spec)
    yield from (c.peak_gflops for c in device.compute_ceilings if (c.data_type, c.pipe, c.origin) == wanted)


# ``ceilings.json`` among the user's own settings: what was measured, by the name of the device.

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


def read_kept() -> KeptCeilings:
    """Nothing where there is no file. Raises ``BadDataError`` for one that can't be used."""
    path = kept_path()
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


def keep(name: str, device: KeptDevice) -> Path | None:
    """Put it in the place of an earlier one; ``None`` where that was measured and this is not."""
    kept, path = read_kept(), kept_path()
    earlier = kept.devices.get(name)
    if earlier is not None and earlier.origin == "measured" != device.origin:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    devices = {**kept.devices, name: device}
    content = kept.model_copy(update={"devices": dict(sorted(devices.items()))}).model_dump(mode="json")
    write_atomic(path, json.dumps(content, indent=2) + "\n")
    return path


def ceilings_of(device: DeviceModel) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    """What was measured on a device of this name: the best of copy, read and write is that of main memory."""
    kept = read_kept().devices.get(device.name)
    if kept is None or kept.origin != "measured":
        return ()
    if (kept.architecture, kept.compute_units) != (device.architecture, device.compute_units):
        return ()  # another partition
    return tuple(_ceilings(kept, device))


def _ceilings(kept: KeptDevice, device: DeviceModel) -> Iterator[ComputeCeiling | MemoryCeiling]:
    origin = CeilingOrigin.MEASURED
    usable = [rate for rate in kept.rates if rate.refused is None]
    levels = [c.level for c in device.memory_ceilings]  # the farthest is the first
    streams = [one for one in usable if one.pipe is None and one.what not in levels]
    if streams and levels:
        best = max(streams, key=lambda one: one.best)
        yield MemoryCeiling(levels[0], best.best, origin, _source(best, kept))
    for one in usable:
        if one.what in levels:
            yield MemoryCeiling(one.what, one.best, origin, _source(one, kept))
        elif one.pipe is not None:
            yield ComputeCeiling(one.what, Pipe(one.pipe), one.best, origin, _source(one, kept))


def _source(one: Rate, kept: KeptDevice) -> str:
    spread = f"slowest {one.slowest:,.6g}"
    made = f"rpl ceilings measure {kept.rpl_version}, {kept.date}"
    return f"{one.kernel}, best of {one.launches}, {spread}; {made}"
