"""``occupancy.json``: begin and end of every wave on every compute unit of the traced shader engines.

Newer files have one array per event, older ones pack each event into one integer (att.md, 1.5). An event
is told from the other form by its type.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.json_values import mapping, rows, text, whole
from rpl_core.errors import BadDataError

NAME = "occupancy.json"
#: Time in the packed form counts units of eight cycles (bits 23 and up hold time / 8).
_PACKED_TIME_SHIFT = 23
_PACKED_TIME_UNIT = 8

Column = NDArray[np.int64]


@attrs.frozen(eq=False)
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


@attrs.frozen(eq=False)
class OccupancyEvents:
    """Events by shader engine, and the symbol of each kernel id that was resolved."""

    engines: tuple[EngineEvents, ...]
    kernel_symbols: dict[int, str]


def read_occupancy(folder: TraceFolder) -> OccupancyEvents | None:
    """All events, or ``None`` without the file."""
    table = folder.table(NAME)
    if table is None:
        return None
    path = folder.path / NAME
    document = mapping(table, path, "the document")
    engines = [
        _engine(int(key), rows(value, path, f"shader engine {key}"), path)
        for key, value in document.items()
        if key.isascii() and key.isdigit() and len(key) < 10
    ]
    named = mapping(document.get("dispatches") or {}, path, "dispatches")
    symbols = {int(k): text(v, path, "dispatches") for k, v in named.items() if k.isascii() and k.isdigit()}
    return OccupancyEvents(tuple(sorted(engines, key=lambda e: e.shader_engine)), symbols)


def _engine(number: int, events: list[Any], path: Path) -> EngineEvents:
    if not events:
        columns: list[Column] = [np.zeros(0, np.int64)] * 6
    elif isinstance(events[0], int):
        columns = _unpacked(np.array([whole(e, path, f"event of SE{number}") for e in events], np.int64))
    else:
        columns = _explicit(number, events, path)
    time = columns[0]
    order = np.argsort(time, kind="stable")
    return EngineEvents(number, *(column[order] for column in columns))


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


def _explicit(number: int, events: list[Any], path: Path) -> list[Column]:
    """``time, cu, simd, slot, start, kernel_id``; newer rows have further columns."""
    values = []
    for event in events:
        if not isinstance(event, list) or len(event) < 6:
            raise BadDataError(f"{path}: an event of SE{number} has not six values")
        values.append([whole(value, path, f"event of SE{number}") for value in event[:6]])
    return list(np.array(values, np.int64).T)
