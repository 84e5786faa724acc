"""``realtime.json``: how shader clocks relate to real time, per shader engine (att.md, 1.6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.json_values import mapping, rows, whole
from rpl_core.errors import BadDataError


def shader_clock_mhz(folder: TraceFolder) -> float | None:
    """Mean shader clock: sum of clock steps over sum of time steps of all shader engines."""
    table = folder.table("realtime.json")
    if table is None:
        return None
    path = folder.path / "realtime.json"
    document = mapping(table, path, "the document")
    metadata = mapping(document.get("metadata") or {}, path, "metadata")
    frequency_hz = whole(metadata.get("frequency") or 0, path, "frequency")
    clocks = ticks = 0
    for key, pairs in sorted(document.items()):
        if key == "metadata" or not pairs:
            continue
        first, last = (_pair(rows(pairs, path, key)[i], path, key) for i in (0, -1))
        clocks += last[0] - first[0]
        ticks += last[1] - first[1]
    if frequency_hz <= 0 or ticks <= 0 or clocks <= 0:
        return None
    return clocks / (ticks / frequency_hz) / 1e6


def _pair(value: object, path: Path, place: str) -> Sequence[int]:
    found = rows(value, path, place)
    if len(found) < 2:
        raise BadDataError(f"{path}: {place} has a row without two clocks")
    return [whole(number, path, place) for number in found[:2]]
