"""What waves did (``filenames.json``, wave files) and when they lived (``occupancy``, ``wstates``)."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_att.reading import TraceFolder, mapping, open_bounded, parse_json, rows, text, whole
from rpl_core.errors import BadDataError
from rpl_core.files import refuse_repeats
from rpl_core.model.metric import ORIGIN_MARK, Origin
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self

BLOCK_BYTES = 1 << 20
_ALLOWED = b"0123456789[], \t\r\n-"
_SPACES = b" \t\r\n"
#: Every number of so many characters fits into 63 bits.
_MAX_DIGITS = 18
_OPEN, _CLOSE, _COMMA = 0x5B, 0x5D, 0x2C

Rows = NDArray[np.int64]


class NotRowsError(ValueError):
    """The text is no array of rows of this width."""


@frozen
class Span:
    """Bytes ``[begin, end)`` of a stream that hold an array with its outer brackets."""

    begin: int
    end: int


def row_blocks(stream: IO[bytes], span: Span, width: int) -> Iterator[Rows]:
    """The rows of the array at ``span`` in blocks of about a megabyte of text.

    Raises ``NotRowsError`` for anything but integers of 18 digits or less in rows of ``width``.
    """
    stream.seek(span.begin + 1)
    left = span.end - span.begin - 2
    rest = b""
    while left > 0:
        block = stream.read(min(BLOCK_BYTES, left))
        if not block:
            raise NotRowsError("the array ends too early")
        left -= len(block)
        text = rest + block
        cut = text.rfind(b"]") + 1 if left else len(text)
        rest = text[cut:]
        if text[:cut].strip(_SPACES + b","):
            yield parse_rows(text[:cut], width)


def parse_rows(text: bytes, width: int) -> Rows:
    """Rows such as ``[1,2],[3,4]``; a comma before the first or behind the last row is accepted."""
    text = text.translate(None, _SPACES).strip(b",")
    if text.translate(None, _ALLOWED):
        raise NotRowsError("found something else than integers")
    # Brackets alternate, and every row has ``width`` - 1 commas.
    raw = np.frombuffer(text, np.uint8)
    separators = np.flatnonzero((raw == _OPEN) | (raw == _CLOSE) | (raw == _COMMA))
    if len(separators) and np.diff(separators).max(initial=0) > _MAX_DIGITS + 1:
        raise NotRowsError("a number has too many digits")
    places = np.flatnonzero((raw == _OPEN) | (raw == _CLOSE))
    kinds = raw[places]
    if len(kinds) % 2 or np.any(kinds[0::2] != _OPEN) or np.any(kinds[1::2] != _CLOSE):
        raise NotRowsError("rows are nested wrongly")
    commas = np.flatnonzero(raw == _COMMA)
    before_open = np.searchsorted(commas, places[0::2])
    before_close = np.searchsorted(commas, places[1::2])
    if np.any(before_close - before_open != width - 1):
        raise NotRowsError(f"a row has not {width} numbers")
    if np.any(before_open != np.arange(len(before_open)) * width):
        raise NotRowsError("rows are not separated by one comma")
    numbers = text.translate(None, b"[]")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            flat = np.fromstring(numbers.decode("ascii"), dtype=np.int64, sep=",")
        except (DeprecationWarning, ValueError):
            raise NotRowsError("found a malformed number") from None
    if len(flat) % width:
        raise NotRowsError("rows are incomplete")
    return flat.reshape(-1, width)


# Find large arrays in a JSON file of any size and return what is left of the file without them.
#
# The file is read in blocks; memory is bounded by the block size and by ``MAX_SKELETON_BYTES``.

MAX_SKELETON_BYTES = 8 << 20
#: Longer than any key with its colon and brackets, so that none is missed at a block's end.
_OVERLAP = 256
_END_OF_ROWS = re.compile(rb"\]\s{0,64}\]")


class SkeletonError(ValueError):
    """The file has no end to an array, or is too large without its arrays."""


@frozen
class Skeleton:
    """The text with each array replaced by ``null``, and where the arrays are, by key."""

    text: bytes
    arrays: dict[str, Span]


def split_arrays(stream: IO[bytes], rows: Sequence[str], nested: Sequence[str] = ()) -> Skeleton:
    """Cut the non-empty array of arrays behind each key out of the text; keys are regular expressions.

    Arrays of ``rows`` hold rows of numbers, so that the first two closing brackets in a row end them; those
    of ``nested`` may be deeper, and their brackets are counted.
    """
    keys = (*rows, *nested)
    pattern = re.compile(rb'"(' + b"|".join(key.encode("ascii") for key in keys) + rb')"\s*:\s*(?=\[\s*\[)')
    stream.seek(0)
    window = _Window(stream)
    skeleton = bytearray()
    arrays: dict[str, Span] = {}
    while True:
        match = pattern.search(window.data)
        if match is None:
            skeleton += window.pass_on(_OVERLAP)
        else:
            key = match[1].decode("ascii")
            skeleton += window.take(match.end()) + b"null"
            span = Span(window.offset, window.skip_array() if key in nested else window.skip_rows())
            if key in arrays:
                raise SkeletonError(f"{key} occurs twice")
            arrays[key] = span
        if len(skeleton) > MAX_SKELETON_BYTES:
            raise SkeletonError(f"more than {MAX_SKELETON_BYTES >> 20} MiB beside its arrays")
        if window.done:
            return Skeleton(bytes(skeleton + window.data), arrays)


class _Window:
    """A moving part of the stream. ``offset`` is the place of its first byte in the stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.data = stream.read(BLOCK_BYTES)
        self.offset = 0
        self.done = False

    def take(self, count: int) -> bytes:
        taken, self.data = self.data[:count], self.data[count:]
        self.offset += count
        return taken

    def pass_on(self, overlap: int) -> bytes:
        """Everything but the last ``overlap`` bytes, replaced by the next block."""
        block = self._stream.read(BLOCK_BYTES)
        if not block:
            self.done = True
            return b""
        taken = self.take(max(0, len(self.data) - overlap))
        self.data += block
        return taken

    def skip_rows(self) -> int:
        """Move behind the array of flat rows that begins here."""
        while (match := _END_OF_ROWS.search(self.data)) is None:
            tail = self.data[-_OVERLAP:]
            self.offset += len(self.data) - len(tail)
            block = self._stream.read(BLOCK_BYTES)
            if not block:
                raise SkeletonError("an array does not end")
            self.data = tail + block
        self.take(match.end())
        return self.offset

    def skip_array(self) -> int:
        """Move behind the array that begins here; returns the offset behind its last bracket."""
        depth = 0
        while True:
            raw = np.frombuffer(self.data, np.uint8)
            steps = (raw == 0x5B).astype(np.int32) - (raw == 0x5D)
            depths = depth + np.cumsum(steps)
            ends = np.flatnonzero((depths == 0) & (steps < 0))
            if len(ends):
                self.take(int(ends[0]) + 1)
                return self.offset
            depth = int(depths[-1]) if len(depths) else depth
            self.offset += len(self.data)
            self.data = self._stream.read(BLOCK_BYTES)
            if not self.data:
                raise SkeletonError("an array does not end")


WAVES_FILE = "filenames.json"
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
    table = folder.table(WAVES_FILE)
    if table is None:
        return None
    path = folder.path / WAVES_FILE
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


# Begin and end of every wave (``occupancy.json``), and waves by state (``wstates<k>.json``).


OCCUPANCY_FILE = "occupancy.json"
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
    path = folder.find(OCCUPANCY_FILE)
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
