"""One wave's file: its identity, its states, and its instructions as a stream of blocks.

Memory stays bounded however long the wave ran: the arrays are located in a first pass and parsed block by
block in a second one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rpl_att.reading.folder import open_bounded
from rpl_att.reading.json_skeleton import Skeleton, split_arrays
from rpl_att.reading.json_values import mapping, rows, whole
from rpl_att.reading.numeric_rows import NotRowsError, Rows, row_blocks
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self

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
