"""``filenames.json``: which waves were traced, where each is kept, and the names of the counters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.json_values import mapping, rows, text, whole
from rpl_core.errors import BadDataError
from rpl_core.files.bounded import refuse_repeats
from rpl_core.model.origin import ORIGIN_MARK, Origin
from rpl_core.text.table import counted
from rpl_core.values import frozen

NAME = "filenames.json"
#: A trace of all SEs of an MI300X in which each slot saw a hundred waves stays below this.
MAX_WAVES = 200_000


@attrs.frozen(order=True)
class WaveFile:
    """One traced wave; times are shader clocks of its shader engine."""

    shader_engine: int
    simd: int
    slot: int
    number: int
    name: str
    begin: int
    end: int


@frozen
class WaveIndex:
    """``gfx_major`` is 9 to 12, or ``None`` in files that do not say (rocprofv2)."""

    waves: tuple[WaveFile, ...]
    gfx_major: int | None = None
    counter_names: tuple[str, ...] = ()
    pc_sampling_only: bool = False
    synthetic: bool = False  # stamped by a generator of test data


def read_wave_index(folder: TraceFolder) -> WaveIndex | None:
    """The index, or ``None`` without the file. Every key but the waves is optional.

    See docs/reference/thread-trace.md, 2.2.
    """
    table = folder.table(NAME)
    if table is None:
        return None
    path = folder.path / NAME
    document = mapping(table, path, "the document")
    gfx = document.get("gfxip")
    waves = sorted(_waves(document.get("wave_filenames"), path))
    refuse_repeats((wave.name for wave in waves), path, "one file for several waves,")  # each is read
    return WaveIndex(
        waves=tuple(waves),
        gfx_major=None if gfx is None else whole(gfx, path, "gfxip"),
        counter_names=tuple(
            text(name, path, "counter_names")
            for name in rows(document.get("counter_names") or [], path, "counter_names")
        ),
        synthetic=document.get(ORIGIN_MARK) == Origin.SYNTHETIC.value,
        pc_sampling_only=bool(document.get("pc_sampling")) and not document.get("thread_trace", True),
    )


def _waves(tree: Any, path: Path) -> Iterator[WaveFile]:
    count = 0
    for engine, simds in _items(tree, path):
        for simd, slots in _items(simds, path):
            for slot, numbers in _items(slots, path):
                for number, entry in _items(numbers, path):
                    count += 1
                    if count > MAX_WAVES:
                        raise BadDataError(f"{path} names more than {MAX_WAVES} waves")
                    yield _wave((engine, simd, slot, number), entry, path)


def _items(tree: Any, path: Path) -> list[tuple[int, Any]]:
    if tree is None:
        return []
    items = []
    for key, value in mapping(tree, path, "wave_filenames").items():
        if not key.isascii() or not key.isdigit() or len(key) > 9:
            raise BadDataError(f"{path}: {key[:60]!r} is no number of a shader engine, SIMD, slot or wave")
        items.append((int(key), value))
    return items


def _wave(place: tuple[int, int, int, int], entry: Any, path: Path) -> WaveFile:
    values = rows(entry, path, "a wave")
    if len(values) != 3:
        raise BadDataError(
            f"{path}: a wave has {counted(len(values), 'value')} instead of file, begin and end"
        )
    name, begin, end = values
    return WaveFile(
        *place,
        text(name, path, "a wave's file"),
        whole(begin, path, "a wave's begin"),
        whole(end, path, "a wave's end"),
    )
