"""The samples in a results JSON of rocprofv3, streamed; kernels from the dispatches of the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import BadDataError
from rpl_core.model.origin import ORIGIN_MARK, Origin
from rpl_pcsampling.reading.growing import GrowingSamples
from rpl_pcsampling.samples import Method, PcSamples, Place, Position
from rpl_rocprofv3.readers.columns import display_name
from rpl_rocprofv3.readers.gzip_limits import BoundedGzip
from rpl_rocprofv3.readers.json.records import entries, fields, is_results_json, refusing_depth

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["holds_samples", "read_json"]

#: Stands before all records; the tables of agents and counters before it take some megabytes (chosen).
_INSTRUCTIONS = b'"pc_sample_instructions"'
_MOST_BEFORE_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20
_ROOM = 64  # blanks between the key and the first instruction


def holds_samples(path: Path) -> bool:
    """Whether a results JSON lists sampled instructions. Reads a bounded part, never raises."""
    if not is_results_json(path):
        return False
    try:
        with BoundedGzip(path) if path.suffix == ".gz" else path.open("rb") as stream:
            left, seen = b"", 0
            while seen < _MOST_BEFORE_BYTES and (block := stream.read(_BLOCK_BYTES)):
                seen += len(block)
                text = left + block
                at = text.find(_INSTRUCTIONS)
                if 0 <= at < len(text) - len(_INSTRUCTIONS) - _ROOM:
                    return _first_item(text[at + len(_INSTRUCTIONS) :])
                left = text[-len(_INSTRUCTIONS) - _ROOM :]
            at = left.find(_INSTRUCTIONS)
            return at >= 0 and _first_item(left[at + len(_INSTRUCTIONS) :])
    except (OSError, EOFError, ValueError, BadDataError):
        return False


def _first_item(text: bytes) -> bool:
    """Whether the list behind a key holds anything."""
    start = text[:_ROOM].lstrip(b" \t\r\n:")
    return start[:1] == b"[" and start[1:].lstrip()[:1] == b'"'


@attrs.define(eq=False)
class _Process:
    """What one process object of the file holds, in file order."""

    instructions: list[str] = attrs.field(factory=list)
    comments: list[str] = attrs.field(factory=list)
    kernel_of_dispatch: dict[int, int] = attrs.field(factory=dict)
    kernels: dict[int, str] = attrs.field(factory=dict)
    origin: Origin = Origin.MEASURED
    by_method: dict[Method, GrowingSamples] = attrs.field(factory=dict)

    def place(self, index: int, code_object: int, offset: int) -> Place:
        decoded = 0 <= index < len(self.instructions)
        text = self.instructions[index] if decoded else None
        comment = self.comments[index] if decoded and index < len(self.comments) else None
        return Place(text or None, comment or None, code_object, offset)


def read_json(path: Path) -> tuple[PcSamples, ...]:
    """The samples by method. Raises ``BadDataError`` for a file without one, or of several processes."""
    with refusing_depth(path):
        process = _read(path)
    read = [growing for growing in process.by_method.values() if len(growing)]
    if not read:
        raise BadDataError(
            f"{path} holds no PC sample",
            cause="the kernels were shorter than the sampling interval",
            next_step="sample more often (--pc-interval) or run longer",
        )
    names = {d: process.kernels[k] for d, k in process.kernel_of_dispatch.items() if k in process.kernels}
    return tuple(growing.samples(names, Position.OFFSET, process.origin) for growing in read)


def _read(path: Path) -> _Process:
    process, processes = _Process(), 0
    adders = {
        "buffer_records.pc_sample_host_trap": Method.HOST_TRAP,
        "buffer_records.pc_sample_stochastic": Method.STOCHASTIC,
    }
    texts = {
        "strings.pc_sample_instructions": process.instructions,
        "strings.pc_sample_comments": process.comments,
    }
    for section, value in entries(path):
        if section in adders:
            _add(process, adders[section], fields(value))
        elif section in texts:
            texts[section].append(str(value))
        elif section == "buffer_records.kernel_dispatch":
            info = fields(fields(value).get("dispatch_info"))
            dispatch, kernel = info.get("dispatch_id"), info.get("kernel_id")
            if isinstance(dispatch, int) and isinstance(kernel, int):
                process.kernel_of_dispatch[dispatch] = kernel
        elif section == "kernel_symbols":
            _add_kernel(process.kernels, fields(value))
        elif section == "metadata":
            processes += 1
            mark = fields(value).get(ORIGIN_MARK)
            if mark is not None:
                known = str(mark) in {origin.value for origin in Origin}
                process.origin = Origin(mark) if known else Origin.SYNTHETIC
    if processes != 1:
        raise BadDataError(
            f"{path} holds {processes} processes, and rpl reads JSON of one process",
            next_step="record one file per process (`-o %hostname%/%pid%`, the default)",
        )
    return process


def _add(process: _Process, method: Method, entry: Mapping[str, Any]) -> None:
    growing = process.by_method.setdefault(method, GrowingSamples(method))
    record, index = fields(entry.get("record")), entry.get("inst_index")
    pc = fields(record.get("pc"))
    numbers: tuple[Any, ...] = (
        *(record.get("dispatch_id"), record.get("timestamp"), record.get("exec_mask"), index),
        *(pc.get("code_object_id"), pc.get("code_object_offset")),
    )
    if not all(type(number) is int for number in numbers):
        growing.left_out += 1
        return
    dispatch, time_ns, mask, at, code_object, offset = numbers
    place = growing.place((at, code_object, offset), lambda: process.place(at, code_object, offset))
    if growing.add(place, dispatch, time_ns, mask) and method is Method.STOCHASTIC:
        reason = fields(record.get("snapshot")).get("stall_reason")
        growing.add_state(record.get("wave_issued"), record.get("inst_type"), reason, record.get("wave_cnt"))


def _add_kernel(kernels: dict[int, str], symbol: Mapping[str, Any]) -> None:
    number = symbol.get("kernel_id")
    name = (
        symbol.get("formatted_kernel_name")
        or symbol.get("demangled_kernel_name")
        or symbol.get("kernel_name")
    )
    if isinstance(number, int) and isinstance(name, str):
        kernels[number] = display_name(name)
