"""Memory layout of the records that the decoder library hands over, as NumPy types.

Facts of AMD's MIT-licensed ``trace_decoder_types.h`` and ``rocprof_trace_decoder.h`` (x86-64, natural
alignment; repository ROCm/rocprof-trace-decoder, folder ``include``).
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
