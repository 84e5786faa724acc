"""Samples of rocprofv3's CSV and JSON files, read one by one, until they become columns."""

from __future__ import annotations

import csv
import re
from array import array
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.metric import ORIGIN_MARK, Origin
from rpl_pcsampling.samples import (
    INSTRUCTION_TYPES,
    STALL_REASONS,
    UNKNOWN,
    Method,
    PcSamples,
    Place,
    Position,
)
from rpl_rocprofv3.readers.columns import display_name
from rpl_rocprofv3.readers.csv.tables import csv_header, open_text
from rpl_rocprofv3.readers.gzip_limits import BoundedGzip
from rpl_rocprofv3.readers.json import entries, fields, is_results_json, refusing_depth

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from pathlib import Path


# Samples as they are read, one by one, until they become columns.

_REASON_PREFIX = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
_TYPE_PREFIX = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_"
_REASONS = {_REASON_PREFIX + name.upper(): number for number, name in enumerate(STALL_REASONS)}
_TYPES = {_TYPE_PREFIX + name.upper(): number for number, name in enumerate(INSTRUCTION_TYPES)}
_MOST_WAVES = 1 << 15
_LARGEST = 1 << 63
_NO_DISPATCH = "no kernel trace was recorded beside the samples, so their dispatches have no name"
_OTHER_DISPATCHES = "the kernel trace beside the samples does not have their dispatches"


def _columns() -> dict[str, array[int]]:
    wide = {"place": "i", "dispatch": "q", "time": "q", "waves": "h"}
    small = dict.fromkeys(("lanes", "issued", "reason", "type"), "b")
    return {name: array(code) for name, code in {**wide, **small}.items()}


@attrs.define(eq=False)
class GrowingSamples:
    """Some 30 bytes per sample; places are kept once, by a key of whoever reads them."""

    method: Method
    left_out: int = 0
    _numbers: dict[Hashable, int] = attrs.field(factory=dict)
    _places: dict[Place, int] = attrs.field(factory=dict)
    _columns: dict[str, array[int]] = attrs.field(factory=_columns)

    def __len__(self) -> int:
        return len(self._columns["place"])

    def place(self, key: Hashable, make: Callable[[], Place]) -> int:
        """The number of the place with this key, which is made when the key is seen first."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._places.setdefault(make(), len(self._places))
        return number

    def add(self, place: int, dispatch: int, time_ns: int, exec_mask: int) -> bool:
        """Add a sample at a numbered place, whose state is unknown. False for numbers that can't be."""
        if not (0 <= dispatch < _LARGEST and 0 <= time_ns < _LARGEST and 0 <= exec_mask < 1 << 64):
            self.left_out += 1
            return False
        columns = self._columns
        columns["place"].append(place)
        columns["dispatch"].append(dispatch)
        columns["time"].append(time_ns)
        columns["lanes"].append(bin(exec_mask).count("1"))
        if self.method is Method.HOST_TRAP:  # the software that takes the sample sees nothing else
            for name in ("issued", "reason", "type", "waves"):
                columns[name].append(UNKNOWN)
        return True

    def add_state(self, issued: object, kind: object, reason: object, waves: object) -> None:
        """What the hardware saw at the sample that was added last.

        The kind of instruction means nothing for a wave that did not issue, the reason nothing for one that
        did (rocprofiler-sdk, using-pc-sampling.rst).
        """
        columns = self._columns
        did = issued if type(issued) is int and issued in (0, 1) else UNKNOWN
        columns["issued"].append(did)
        columns["type"].append(_TYPES.get(str(kind), UNKNOWN) if did == 1 else UNKNOWN)
        columns["reason"].append(_REASONS.get(str(reason), UNKNOWN) if did == 0 else UNKNOWN)
        columns["waves"].append(waves if type(waves) is int and 0 < waves < _MOST_WAVES else UNKNOWN)

    def samples(self, names: Mapping[int, str], position: Position, origin: Origin) -> PcSamples:
        """The columns; ``names`` are kernel names by dispatch id."""
        columns = self._columns
        dispatch = np.array(columns["dispatch"], np.int64)
        kernels = tuple(dict.fromkeys(names.values()))
        number = {name: index for index, name in enumerate(kernels)}
        used, inverse = np.unique(dispatch, return_inverse=True)
        of_used = np.array(
            [number.get(names.get(used_id, ""), UNKNOWN) for used_id in used.tolist()], np.int32
        )
        kernel = of_used[inverse.reshape(-1)] if len(used) else np.zeros(0, np.int32)
        lost = bool((kernel == UNKNOWN).any())
        return PcSamples(
            method=self.method,
            position=position,
            origin=origin,
            kernels=kernels,
            places=tuple(self._places),
            kernel=kernel,
            place=np.array(columns["place"], np.int32),
            dispatch_id=dispatch,
            timestamp_ns=np.array(columns["time"], np.int64),
            lanes=np.array(columns["lanes"], np.int8),
            issued=np.array(columns["issued"], np.int8),
            reason=np.array(columns["reason"], np.int8),
            instruction_type=np.array(columns["type"], np.int8),
            waves=np.array(columns["waves"], np.int16),
            unnamed=(_OTHER_DISPATCHES if names else _NO_DISPATCH) if lost else None,
            left_out=self.left_out,
        )


# ``*_pc_sampling_*.csv``, told by its header: one row per sample; kernels from the kernel trace beside.

_COMMON = (
    *("Sample_Timestamp", "Exec_Mask", "Dispatch_Id", "Instruction", "Instruction_Comment"),
    "Correlation_Id",
)
_STOCHASTIC = ("Wave_Issued_Instruction", "Instruction_Type", "Stall_Reason", "Wave_Count")
_KIND = re.compile(r"pc_sampling_(?:host_trap|stochastic)\w*\.csv(?:\.gz)?")
#: What the profiler writes instead of a comment where it knows no code object.
_UNRECOGNISED = "Unrecognized code object id"


def is_sample_table(path: Path) -> bool:
    """Whether the first line is that of a table of samples, whatever the file is called."""
    if not path.name.endswith((".csv", ".csv.gz")):
        return False
    header = csv_header(path)
    return tuple(header[: len(_COMMON)]) == _COMMON


def companions(table: Path, files: Iterable[Path]) -> list[Path]:
    """The tables of the same process among ``files``: agents, and the trace that names dispatches."""
    match = _KIND.search(table.name)
    if match is None:
        return []
    prefix = table.name[: match.start()]
    wanted = {f"{prefix}{kind}.csv{end}" for kind in ("kernel_trace", "agent_info") for end in ("", ".gz")}
    return [path for path in files if path.parent == table.parent and path.name in wanted]


def read_csv(path: Path, names: Mapping[int, str], origin: Origin) -> PcSamples:
    """All samples of ``path``. Rows that are cut off or hold no numbers are left out and counted.

    Raises ``BadDataError`` for a table without a sample.
    """
    rows = _rows(path)
    header = tuple(next(rows, ()))
    stochastic = header[len(_COMMON) :][: len(_STOCHASTIC)] == _STOCHASTIC
    growing = GrowingSamples(Method.STOCHASTIC if stochastic else Method.HOST_TRAP)
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            growing.left_out += 1
            continue
        try:
            time_ns, mask, dispatch = int(row[0]), int(row[1], 0), int(row[2])
            issued, waves = (int(row[6]), int(row[9])) if stochastic else (None, None)
        except ValueError:
            growing.left_out += 1
            continue
        place = growing.place((row[3], row[4]), lambda row=row: _place_of(row[3], row[4]))  # type: ignore[misc]
        if growing.add(place, dispatch, time_ns, mask) and stochastic:
            growing.add_state(issued, row[7], row[8], waves)
    if not len(growing):
        raise BadDataError(
            f"{path} holds no sample",
            cause="the kernels were shorter than the sampling interval, or the file was cut off",
            next_step="sample more often (--pc-interval) or run longer",
        )
    return growing.samples(names, Position.TEXT, origin)


def kernel_names(trace: Path) -> dict[int, str]:
    """Kernel names by dispatch id, from a kernel trace; rows without both are passed over."""
    rows = _rows(trace)
    header = list(next(rows, ()))
    if not {"Dispatch_Id", "Kernel_Name"} <= set(header):
        return {}
    number, name = header.index("Dispatch_Id"), header.index("Kernel_Name")
    return {
        int(row[number]): display_name(row[name])
        for row in rows
        if len(row) == len(header) and row[number].isascii() and row[number].isdigit() and row[name]
    }


def _rows(path: Path) -> Iterator[list[str]]:
    with open_text(path) as stream:  # turns damage into ``BadDataError``
        yield from csv.reader(stream)


def _place_of(instruction: str, comment: str) -> Place:
    if comment.startswith(_UNRECOGNISED):
        return Place(None)
    return Place(instruction or None, comment or None)


# The samples in a results JSON of rocprofv3, streamed; kernels from the dispatches of the same file.

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
            symbol = fields(value)
            number = symbol.get("kernel_id")
            name = (
                symbol.get("formatted_kernel_name")
                or symbol.get("demangled_kernel_name")
                or symbol.get("kernel_name")
            )
            if isinstance(number, int) and isinstance(name, str):
                process.kernels[number] = display_name(name)
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
