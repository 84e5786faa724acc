"""The decoder library: what its process is asked and answers, its C interface, its records in memory."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_core.errors import BadDataError, MissingError
from rpl_core.values import frozen

#: Name of the answer in the folder that the worker writes.
ANSWER = "decoding.json"


@frozen
class CodeSource:
    """Where instructions of a code object come from: a JSON table, or an ELF for ``disassembler``."""

    path: Path
    disassembler: Path | None = None


@attrs.frozen(order=True)
class Load:
    """Code object ``number`` in memory: ``size`` bytes at ``base``; ``delta`` is address - ELF address."""

    base: int
    size: int
    delta: int
    number: int


@frozen
class Job:
    """``traces`` are (shader engine, file); ``code`` is by code object id, 0 for absolute addresses."""

    library: Path
    traces: tuple[tuple[int, Path], ...]
    code: dict[int, CodeSource]
    loads: tuple[Load, ...]
    out: Path
    memory_bytes: int

    def to_json(self) -> str:
        return json.dumps(
            {
                "library": str(self.library),
                "traces": [[engine, str(path)] for engine, path in self.traces],
                "code": {
                    str(number): [str(source.path), str(source.disassembler) if source.disassembler else None]
                    for number, source in sorted(self.code.items())
                },
                "loads": [attrs.astuple(load) for load in self.loads],
                "out": str(self.out),
                "memory_bytes": self.memory_bytes,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Job:
        fields = json.loads(text)
        return cls(
            Path(fields["library"]),
            tuple((engine, Path(path)) for engine, path in fields["traces"]),
            {
                int(number): CodeSource(Path(path), Path(tool) if tool else None)
                for number, (path, tool) in fields["code"].items()
            },
            tuple(Load(*load) for load in fields["loads"]),
            Path(fields["out"]),
            fields["memory_bytes"],
        )


@frozen
class Answer:
    """``statuses`` of the library by file, ``notes`` about the trace, ``error`` if there was no decoding."""

    statuses: dict[str, int]
    notes: tuple[str, ...] = ()
    error: str | None = None

    def to_json(self) -> str:
        return json.dumps(attrs.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        fields = json.loads(text)
        return cls(fields["statuses"], tuple(fields["notes"]), fields["error"])


class Status(IntEnum):
    """What the library, or a callback, says about a call."""

    SUCCESS = 0
    ERROR = 1
    OUT_OF_RESOURCES = 2
    INVALID_ARGUMENT = 3
    INVALID_SHADER_DATA = 4


class Record(IntEnum):
    """Kinds of records that are used here; others (debug, shader data, other SIMD) are passed over."""

    GFXIP = 0
    OCCUPANCY = 1
    WAVE = 3
    INFO = 4
    REALTIME = 7
    RT_FREQUENCY = 8


#: ``rocprofiler_thread_trace_decoder_info_t`` and what it means for the figures
#: (docs/reference/thread-trace.md, 4.3).
INFO_MEANINGS = {
    1: "data was lost while tracing: sums are lower bounds",
    2: "some tokens were matched to no instruction: figures of single lines are lower bounds",
    3: "the trace ends before its waves do: lifetimes are lower bounds",
}

#: A program counter: an ELF virtual address, or an absolute one where ``code_object`` is 0.
PC = np.dtype([("address", "<u8"), ("code_object", "<u8")])
OCCUPANCY = np.dtype(
    [
        ("pc", PC),
        ("time", "<u8"),
        ("reserved", "u1"),
        ("cu", "u1"),
        ("simd", "u1"),
        ("slot", "u1"),
        ("flags", "<u4"),  # bit 0: the wave starts
    ]
)
STATE = np.dtype([("state", "<i4"), ("duration", "<i4")])
INSTRUCTION = np.dtype(
    [
        ("category_and_stall", "<u4"),  # bits 0-7 category, 8-31 stall
        ("duration", "<i4"),
        ("time", "<i8"),
        ("pc", PC),
    ]
)
WAVE = np.dtype(
    [
        ("cu", "u1"),
        ("simd", "u1"),
        ("slot", "u1"),
        ("contexts", "u1"),
        ("reserved", "<u4", 3),
        ("begin", "<i8"),
        ("end", "<i8"),
        ("states", "<u8"),
        ("instructions", "<u8"),
        ("state_pointer", "<u8"),
        ("instruction_pointer", "<u8"),
    ]
)
REALTIME = np.dtype([("shader_clock", "<i8"), ("realtime_clock", "<u8"), ("reserved", "<u8")])
INFO = np.dtype("<i4")
FREQUENCY = np.dtype("<u8")


def copied(address: int, count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """``count`` records at ``address`` in this process, copied: the library frees them after the call."""
    if not address or not count:
        return np.zeros(0, kind)
    records: NDArray[Any] = np.frombuffer(ctypes.string_at(address, count * kind.itemsize), dtype=kind)
    return records


# The decoder library's C interface: one call decodes the trace of one shader engine.
#
# What the records mean is left to the sink, what the instructions are to the listing. Only the worker
# process uses this: a library that fails takes its process with it.

#: (record kind, address of the records, their number). GFXIP passes its value in place of an address.
RecordSink = Callable[[int, int, int], None]
#: (code object id, address) -> (text, size in bytes), or ``None`` for an unknown address.
InstructionSource = Callable[[int, int], "tuple[str, int] | None"]


class _Pc(ctypes.Structure):
    _fields_ = (("address", ctypes.c_uint64), ("code_object_id", ctypes.c_uint64))


_U64 = ctypes.POINTER(ctypes.c_uint64)
_DataCallback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p), _U64, ctypes.c_void_p)
_TraceCallback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p
)
_IsaCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _U64, _U64, _Pc, ctypes.c_void_p)


class DecoderLibrary:
    """The loaded library. Raises ``MissingError`` if it can't be loaded or lacks the entry point."""

    def __init__(self, path: Path) -> None:
        try:
            self._parse = ctypes.CDLL(str(path)).rocprof_trace_decoder_parse_data
        except (OSError, AttributeError) as error:
            raise MissingError(f"{path} is no usable trace decoder: {error}") from None
        self._parse.argtypes = (_DataCallback, _TraceCallback, _IsaCallback, ctypes.c_void_p)
        self._parse.restype = ctypes.c_int

    def decode(self, data: bytes, sink: RecordSink, source: InstructionSource) -> int:
        """Decode ``data``; returns the library's status.

        An exception of ``sink`` or ``source`` stops the decoding and is raised again here.
        """
        call = _Call(data, sink, source)
        status = self._parse(
            _DataCallback(call.give_data), _TraceCallback(call.take), _IsaCallback(call.instruction), None
        )
        if call.failure is not None:
            raise call.failure
        return int(status)


class _Call:
    """State of one decoding. No exception may cross the C frames: it is kept in ``failure``."""

    def __init__(self, data: bytes, sink: RecordSink, source: InstructionSource) -> None:
        self.failure: Exception | None = None
        self._buffer = ctypes.create_string_buffer(data, len(data))
        self._given = False
        self._sink = sink
        self._source = source

    def give_data(self, buffer: Any, size: Any, _user: Any) -> int:
        """The whole trace at the first call, then nothing."""
        if self._given:
            return 0
        self._given = True
        buffer[0] = ctypes.addressof(self._buffer)
        size[0] = len(self._buffer)
        return len(self._buffer)

    def take(self, kind: int, events: int | None, count: int, _user: Any) -> int:
        try:
            self._sink(kind, events or 0, count)
        except Exception as error:  # noqa: BLE001 - raised again behind the C frames
            self.failure = error
            return Status.ERROR
        return Status.SUCCESS

    def instruction(self, text: int, memory_size: Any, size: Any, pc: _Pc, _user: Any) -> int:
        """Copy one instruction; a buffer too small gets the size it must have."""
        try:
            source = self._source(int(pc.code_object_id), int(pc.address))
        except Exception as error:  # noqa: BLE001 - raised again behind the C frames
            self.failure = error
            return Status.ERROR
        if source is None:
            return Status.INVALID_ARGUMENT
        line = source[0].encode()
        if size[0] < len(line):
            size[0] = len(line)
            return Status.OUT_OF_RESOURCES
        ctypes.memmove(text, line, len(line))
        size[0], memory_size[0] = len(line), source[1]
        return Status.SUCCESS


def check_status(status: int, name: str) -> str | None:
    """What a failed decoding of file ``name`` means, in one line; ``None`` for success."""
    if status == Status.SUCCESS:
        return None
    known = {s.value: s.name.lower().replace("_", " ") for s in Status}
    return f"the decoder refused {name}: status {status} ({known.get(status, 'unknown')})"


def require_any(statuses: dict[str, int]) -> tuple[str, ...]:
    """The refusals among ``statuses`` by file; raises ``BadDataError`` if nothing was decoded."""
    refused = tuple(line for name, status in sorted(statuses.items()) if (line := check_status(status, name)))
    if refused and len(refused) == len(statuses):
        raise BadDataError(
            refused[0],
            cause="decoder, driver and device do not fit, or a code object is missing",
            next_step="use the decoder of the ROCm that recorded the trace",
        )
    return refused
