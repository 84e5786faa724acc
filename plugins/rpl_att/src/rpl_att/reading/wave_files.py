"""Which waves were traced (``filenames.json``), and each one's instructions as a stream of blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_att.reading.folder import TraceFolder, mapping, open_bounded, rows, text, whole
from rpl_att.reading.json_arrays import NotRowsError, Rows, Skeleton, row_blocks, split_arrays
from rpl_core.errors import BadDataError
from rpl_core.files.bounded import refuse_repeats
from rpl_core.model.origin import ORIGIN_MARK, Origin
from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self


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


# One wave's file: its identity, its states, and its instructions as a stream of blocks.
#
# Memory stays bounded however long the wave ran: the arrays are located in a first pass and parsed block by
# block in a second one.

#: Columns of an instruction row (docs/reference/thread-trace.md, 2.5). ``DURATION`` contains ``STALL``.
TIME, CATEGORY, STALL, DURATION, LINE = range(5)
STATE_COUNT = 5
_MAX_WAITS_BYTES = 4 << 20

Waits = tuple[tuple[int, tuple[int, ...]], ...]


@frozen(eq=False)
class OpenWave:
    """A wave whose file is open. Times are shader clocks; ``cu`` is a WGP on gfx10 and newer."""

    path: Path
    begin: int
    end: int
    cu: int | None
    reported_instructions: int | None
    reported_stitched: int | None
    _stream: IO[bytes]
    _skeleton: Skeleton

    def instructions(self) -> Iterator[Rows]:
        """Blocks of rows ``time, category, stall, duration, line`` in order of issue."""
        for block in self._rows("instructions", 5):
            if np.any(block[:, STALL:LINE] < 0):
                raise BadDataError(f"{self.path}: an instruction has a negative duration or stall")
            if np.any((block[:, CATEGORY] < 0) | (block[:, CATEGORY] > 255)):
                raise BadDataError(f"{self.path}: an instruction has an impossible category")
            yield block

    def state_cycles(self) -> Rows:
        """Cycles in each state: empty, idle, exec, wait, stall."""
        total = np.zeros(STATE_COUNT, np.int64)
        for block in self.timeline():
            total += np.bincount(block[:, 0], weights=block[:, 1], minlength=STATE_COUNT).astype(np.int64)
        return total

    def timeline(self) -> Iterator[Rows]:
        """Blocks of rows ``state, duration``, contiguous from ``begin``."""
        for block in self._rows("timeline", 2):
            if np.any((block[:, 0] < 0) | (block[:, 0] >= STATE_COUNT) | (block[:, 1] < 0)):
                raise BadDataError(f"{self.path}: an impossible state in the timeline")
            yield block

    def waits(self) -> Waits | None:
        """What the decoder says each wait waited for: (line of the wait, lines of the operations).

        ``None`` where it says nothing, or too much to be held.
        """
        span = self._skeleton.arrays.get("waitcnt")
        if span is None or span.end - span.begin > _MAX_WAITS_BYTES:
            return None
        self._stream.seek(span.begin)
        try:
            listed = json.loads(self._stream.read(span.end - span.begin))
            return tuple((int(line), tuple(int(op[0]) for op in ops)) for line, ops in listed)
        except (ValueError, TypeError, IndexError, RecursionError):
            raise BadDataError(f"{self.path}: the list of waits is malformed") from None

    def _rows(self, key: str, width: int) -> Iterator[Rows]:
        span = self._skeleton.arrays.get(key)
        if span is None:
            return
        try:
            yield from row_blocks(self._stream, span, width)
        except NotRowsError as error:
            raise BadDataError(f"{self.path}: {key}: {error}", next_step="decode the trace again") from None

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_wave(path: Path) -> OpenWave:
    """Open the wave in ``path``. Raises ``BadDataError`` naming the file for a damaged one."""
    stream = open_bounded(path)
    try:
        skeleton = split_arrays(stream, rows=("instructions", "timeline"), nested=("waitcnt",))
        document = mapping(json.loads(skeleton.text), path, "the document")
        wave = mapping(document.get("wave"), path, "wave")
        begin, end = _life(wave, path)
        return OpenWave(
            path=path,
            begin=begin,
            end=end,
            cu=_optional(wave, "cu", path),
            reported_instructions=_optional(document, "num_insts", path),
            reported_stitched=_optional(document, "num_stitched", path),
            stream=stream,
            skeleton=_checked(skeleton, wave, path),
        )
    except (ValueError, RecursionError) as error:
        stream.close()
        cause = "the decoder was stopped, or the copy is incomplete"
        raise BadDataError(f"{path} is no wave: {error}", cause=cause) from None
    except BaseException:
        stream.close()
        raise


def _life(wave: dict[str, Any], path: Path) -> tuple[int, int]:
    begin, end = whole(wave.get("begin"), path, "begin"), whole(wave.get("end"), path, "end")
    if end < begin:
        raise BadDataError(f"{path}: the wave ends before it begins")
    return begin, end


def _checked(skeleton: Skeleton, wave: dict[str, Any], path: Path) -> Skeleton:
    """Arrays that were not cut out hold nothing: null, or an empty array."""
    for key in ("instructions", "timeline", "waitcnt"):
        left = wave.get(key)
        if left is not None and rows(left, path, key):
            raise BadDataError(f"{path}: {key} is no array of rows")
    return skeleton


def _optional(document: dict[str, Any], key: str, path: Path) -> int | None:
    value = document.get(key)
    return None if value is None else whole(value, path, key)
