"""Begin and end of every wave (``occupancy.json``), and waves by state (``wstates<k>.json``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rpl_att.reading.folder import TraceFolder, mapping, open_bounded, parse_json, rows, text, whole
from rpl_att.reading.json_arrays import (
    BLOCK_BYTES,
    NotRowsError,
    SkeletonError,
    Span,
    row_blocks,
    split_arrays,
)
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

NAME = "occupancy.json"
#: Time in the packed form counts units of eight cycles (bits 23 and up hold time / 8).
_PACKED_TIME_SHIFT = 23
_PACKED_TIME_UNIT = 8

#: Keys of shader engines and kernel ids.
_ENGINE = "[0-9]{1,9}"
_COLUMNS = 6

Column = NDArray[np.int64]


@frozen(eq=False)
class EngineEvents:
    """Wave begins and ends of one shader engine in order of time; ``start`` is 1 for a begin."""

    shader_engine: int
    time: Column
    cu: Column
    simd: Column
    slot: Column
    start: Column
    kernel: Column

    def __len__(self) -> int:
        return len(self.time)


@frozen(eq=False)
class OccupancyEvents:
    """Events by shader engine, and the symbol of each kernel id that was resolved."""

    engines: tuple[EngineEvents, ...]
    kernel_symbols: dict[int, str]


def read_occupancy(folder: TraceFolder) -> OccupancyEvents | None:
    """All events, or ``None`` without the file."""
    path = folder.find(NAME)
    if path is None:
        return None
    with open_bounded(path) as stream:
        try:
            skeleton = split_arrays(stream, rows=(_ENGINE,))
            explicit = {key: _explicit(stream, span) for key, span in skeleton.arrays.items()}
        except (SkeletonError, NotRowsError) as error:
            raise BadDataError(f"{path}: {error}", next_step="decode the trace again") from None
    document = mapping(parse_json(skeleton.text, path), path, "the document")
    engines = [
        EngineEvents(int(key), *_ordered(explicit.get(key) or _packed(value, path)))
        for key, value in document.items()
        if re.fullmatch(_ENGINE, key)
    ]
    named = mapping(document.get("dispatches") or {}, path, "dispatches")
    symbols = {int(k): text(v, path, "dispatches") for k, v in named.items() if re.fullmatch(_ENGINE, k)}
    return OccupancyEvents(tuple(sorted(engines, key=lambda e: e.shader_engine)), symbols)


def _ordered(columns: Sequence[Column]) -> list[Column]:
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


def _explicit(stream: IO[bytes], span: Span) -> list[Column]:
    """``time, cu, simd, slot, start, kernel_id``; newer rows have further columns."""
    stream.seek(span.begin)
    width = stream.read(min(BLOCK_BYTES, span.end - span.begin)).partition(b"]")[0].count(b",") + 1
    if width < _COLUMNS:
        raise NotRowsError(f"an event has not {_COLUMNS} values")
    blocks = [block[:, :_COLUMNS] for block in row_blocks(stream, span, width)]
    return list(np.concatenate(blocks).T)


def _packed(value: Any, path: Path) -> list[Column]:
    """Events that are integers, or none at all."""
    events = [whole(event, path, "an event") for event in rows(value, path, "events")]
    return _unpacked(np.array(events, np.int64))


def _unpacked(packed: Column) -> list[Column]:
    """Bits 0-11 kernel id, 12-13 SIMD, 14-17 slot, 18 start, 19-22 CU, from 23 time / 8."""
    return [
        (packed >> _PACKED_TIME_SHIFT) * _PACKED_TIME_UNIT,
        (packed >> 19) & 0xF,
        (packed >> 12) & 0x3,
        (packed >> 14) & 0xF,
        (packed >> 18) & 0x1,
        packed & 0xFFF,
    ]


# ``wstates<k>.json``: how many waves of the target CU are in state k over time.
#
# See docs/reference/thread-trace.md, 2.8.

STATE_NAMES = {1: "idle", 2: "exec", 3: "wait", 4: "stall"}


@frozen
class StateSteps:
    """A step function: ``counts[i]`` waves from ``clocks[i]`` on."""

    state: str
    clocks: tuple[int, ...]
    counts: tuple[int, ...]


def read_state_steps(folder: TraceFolder) -> tuple[StateSteps, ...]:
    """The states for which a file exists, in the order idle, exec, wait, stall."""
    steps = []
    for number, name in STATE_NAMES.items():
        file = f"wstates{number}.json"
        table = folder.table(file)
        if table is None:
            continue
        path = folder.path / file
        document = mapping(table, path, "the document")
        clocks = [whole(v, path, "time") for v in rows(document.get("time"), path, "time")]
        counts = [whole(v, path, "state") for v in rows(document.get("state"), path, "state")]
        if len(clocks) != len(counts):
            raise BadDataError(f"{path}: time and state differ in length")
        steps.append(StateSteps(name, tuple(clocks), tuple(counts)))
    return tuple(steps)
