"""The decoder library's C interface: one call decodes the trace of one shader engine.

What the records mean is left to the sink, what the instructions are to the listing. Only the worker
process uses this: a library that fails takes its process with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rpl_att.decoding.records import Status
from rpl_core.errors import BadDataError, MissingError

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
