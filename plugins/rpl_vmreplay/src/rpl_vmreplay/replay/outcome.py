"""What `rpl replay` tells of a replay: exit codes, statistics, documents (docs/REPLAY_JSON_SCHEMA.md)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from rpl_core.errors import (
    BadDataError,
    ExitCode,
    InterruptedRunError,
    MissingError,
    RplError,
    TimeLimitError,
    UsageError,
)
from rpl_core.values import frozen
from rpl_vmreplay.capture.layout import CODE_OBJECT, DISPATCH, KERNARG, REGIONS
from rpl_vmreplay.interfaces import (
    Failure,
    MemoryRange,
    ReplayError,
    ReplayRequest,
    ReplayResult,
    Reservation,
    ReserveResult,
)

if TYPE_CHECKING:
    from rpl_vmreplay.capture.folder import Capture


SCHEMA_VERSION = "1.0"
_MICROSECOND = 1000
_95_PERCENT = 0.95
_MOST_DIFFERING = 100

EXIT_CODES: dict[ReplayError, int] = {
    ReplayError.RESERVE_FAILED: 1,
    ReplayError.MAP_FAILED: 1,
    ReplayError.COPY_FAILED: 1,
    ReplayError.RELOCATED: 3,
    ReplayError.LAYOUT_CLASH: 3,
    ReplayError.GPU_FAULT: 4,
    ReplayError.ISA_MISMATCH: 5,
    ReplayError.NO_VIRTUAL_MEMORY: 6,
    ReplayError.NO_RUNTIME: ExitCode.MISSING,
    ReplayError.NO_DEVICE: ExitCode.MISSING,
    ReplayError.BAD_CODE: ExitCode.BAD_DATA,
    ReplayError.UNSUPPORTED: ExitCode.MISSING,
    ReplayError.UNDECIDABLE: ExitCode.NO_VERDICT,
    ReplayError.TIME_LIMIT: ExitCode.TIME_LIMIT,
    ReplayError.INTERNAL: ExitCode.INTERNAL,
}
#: Failures before anything was run.
_KINDS: tuple[tuple[type[RplError], str], ...] = (
    (UsageError, "usage"),
    (BadDataError, "bad_capture"),
    (MissingError, "missing"),
    (TimeLimitError, "time_limit"),
    (InterruptedRunError, "interrupted"),
)


def exit_code_of(failure: Failure) -> int:
    return int(EXIT_CODES[failure.kind])


def error_of(failure: Failure) -> dict[str, Any]:
    return {
        "kind": failure.kind.value,
        "fact": failure.fact,
        "cause": failure.cause,
        "next_step": failure.next_step,
        "address": failure.address,
    }


def error_of_exception(error: RplError) -> dict[str, Any]:
    """Of what ended the command before a replayer could say anything."""
    kind = next((name for kind, name in _KINDS if isinstance(error, kind)), "internal")
    told = {"kind": kind, "fact": error.fact, "cause": error.cause, "next_step": error.next_step}
    return {**told, "address": None}


@frozen
class Timing:
    """In microseconds; ``None`` where too few launches were timed."""

    average: float | None
    min: float | None
    max: float | None
    median: float | None
    p95: float | None
    cv: float | None


def timing_of(times_ns: Sequence[int]) -> Timing:
    """``p95`` by the nearest rank, ``cv`` with the standard deviation of a sample."""
    if not times_ns:
        return Timing(None, None, None, None, None, None)
    ordered = sorted(times_ns)
    mean = statistics.fmean(ordered)
    rank = -(-len(ordered) * _95_PERCENT // 1)
    cv = statistics.stdev(ordered) / mean if len(ordered) > 1 and mean > 0 else None
    return Timing(
        average=mean / _MICROSECOND,
        min=ordered[0] / _MICROSECOND,
        max=ordered[-1] / _MICROSECOND,
        median=statistics.median(ordered) / _MICROSECOND,
        p95=ordered[int(rank) - 1] / _MICROSECOND,
        cv=cv,
    )


def replay_document(capture: Capture, request: ReplayRequest, result: ReplayResult) -> dict[str, Any]:
    """Of a replay that ran, or failed while it did."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel": {
            "name": capture.dispatch.mangled_name,
            "demangled_name": capture.dispatch.demangled_name,
            "hsaco_path": str(request.code_object or capture.folder / CODE_OBJECT),
            "captured_code": request.code_object is None,
        },
        "execution": _execution(request, result),
        "timing": _timing(result),
        "environment": {
            "gpu_agent": result.environment.device,
            "product": result.environment.product,
            "isa": result.environment.isa,
            "rocm_version": result.environment.runtime_version,
            "interface_version": result.environment.interface_version,
            "runtime": result.environment.runtime,
            "pid": result.environment.pid,
        },
        "capture": {"path": str(capture.folder), "layout": capture.layout, "hash": capture_hash(capture)},
        "reproduced": result.reproduced,
        "reproduced_reason": result.reproduced_reason,
        "differing": [
            {"address": place.address, "size": place.size} for place in result.differing[:_MOST_DIFFERING]
        ],
        "reservations": [reservation_document(reservation) for reservation in result.reservations],
        "notes": list(result.notes),
        "error": None if result.failure is None else error_of(result.failure),
    }


def failure_document(error: RplError) -> dict[str, Any]:
    """The same keys where nothing was run."""
    nothing = dict.fromkeys(("kernel", "execution", "timing", "environment", "capture", "reproduced"))
    return {
        "schema_version": SCHEMA_VERSION,
        **nothing,
        "reproduced_reason": "nothing was run",
        "differing": [],
        "reservations": [],
        "notes": [],
        "error": error_of_exception(error),
    }


def _execution(request: ReplayRequest, result: ReplayResult) -> dict[str, Any]:
    return {
        "iterations": request.iterations,
        "mode": "stateless" if request.recopy else "stateful",
        "warm_ups": request.warm_ups,
        "cache_mode": "cold" if result.flushed_bytes else "warm",
        "flushed_bytes": result.flushed_bytes,
        "restored_bytes": result.restored_bytes,
        "replayer": result.replayer,
        "stale_arguments": list(result.stale_arguments),
        "patched_arguments": list(result.patched_arguments),
    }


def _timing(result: ReplayResult) -> dict[str, Any]:
    timing = timing_of(result.times_ns)
    return {
        "unit": "microseconds",
        "origin": result.origin.value,
        "average": timing.average,
        "min": timing.min,
        "max": timing.max,
        "median": timing.median,
        "p95": timing.p95,
        "cv": timing.cv,
        "raw": [time / _MICROSECOND for time in result.times_ns],
        "warm_up_raw": [time / _MICROSECOND for time in result.warm_up_ns],
        "total_wall": None if result.wall_ns is None else result.wall_ns / _MICROSECOND,
    }


def reservation_document(reservation: Reservation) -> dict[str, Any]:
    return {
        "requested": reservation.requested,
        "size": reservation.size,
        "returned": reservation.returned,
        "exact": reservation.exact,
    }


def capture_hash(capture: Capture) -> str:
    """XXH3 over launch, arguments, code, all memory and variables before it; equal captures have equal
    ones."""
    import xxhash

    from rpl_vmreplay.capture.folder import BLOCK_BYTES, blocks_with_data

    digest = xxhash.xxh3_64()
    for name in (DISPATCH, KERNARG, CODE_OBJECT, REGIONS):
        digest.update((capture.folder / name).read_bytes())
    for region in capture.regions:
        stored = capture.hashes_of(region, "pre")
        if stored is not None:
            digest.update(stored.read_bytes())
            continue
        for offset, block in blocks_with_data(capture.path_of(region), region.size):
            if any(block):
                digest.update(offset.to_bytes(8, "little") + block[:BLOCK_BYTES])
    for variable in capture.variables:
        digest.update(variable.name.encode() + b"\0" + (capture.folder / variable.blob).read_bytes())
    return f"xxh3:{digest.hexdigest()}"


# Which addresses `rpl replay reserve-check` asks for, and what it makes of the answers.

PAGE_BYTES = 4096
_PROBE_BYTES = 2 << 20
#: Asked for without a capture: where ROCr's switch for low addresses begins, 16 TiB, and among the libraries
#: of other processes (docs/REPLAY.md).
PROBES = tuple(MemoryRange(base, _PROBE_BYTES) for base in (0x4801400000, 0x100000000000, 0x7E0000000000))


class Verdict(IntEnum):
    """The exit code says it too."""

    EXACT = 0
    FAILED = 1
    RELOCATED = 2


def ranges_of(capture: Capture) -> tuple[MemoryRange, ...]:
    """Whole pages; those that share one or touch are one range, as the replayer reserves them."""
    ranges: list[MemoryRange] = []
    for region in sorted(capture.regions, key=lambda region: region.base):
        begin = region.base // PAGE_BYTES * PAGE_BYTES
        end = -(-region.end // PAGE_BYTES) * PAGE_BYTES
        if ranges and begin <= ranges[-1].address + ranges[-1].size:
            begin = ranges.pop().address
        ranges.append(MemoryRange(begin, end - begin))
    return tuple(ranges)


def verdict_of(result: ReserveResult) -> Verdict | None:
    """``None``: the failure says nothing of addresses."""
    asked = (ReplayError.RESERVE_FAILED, ReplayError.LAYOUT_CLASH, ReplayError.RELOCATED)
    if result.failure is not None and result.failure.kind not in asked:
        return None
    if result.failure is not None and result.failure.kind is not ReplayError.RELOCATED:
        return Verdict.FAILED
    return worst(result)


def worst(result: ReserveResult) -> Verdict:
    exact = all(reservation.exact for reservation in result.reservations)
    return Verdict.EXACT if exact else Verdict.RELOCATED
