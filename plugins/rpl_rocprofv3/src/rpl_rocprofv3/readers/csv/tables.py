"""Tables in CSV files (plain or gzip) as typed columns, read in blocks of bytes.

Blocks of plain rows become columns whole (``plain_rows``); from the first one that is none the csv module
reads the rest of the file, row by row, with the same result.
Column names are matched without case, because profilers changed their spelling between releases. Rows of
the wrong length and values of the wrong type are counted; the callers turn the counts into diagnostics.
"""

from __future__ import annotations

import codecs
import csv
import io
import zlib
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.gzip_limits import GZIP_ERRORS, BoundedGzip, refuse_bomb, refuse_hollow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from _typeshed import WriteableBuffer

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column

_CHUNK_ROWS = 1 << 14
# Fits the caches with what is made of it (4 and 16 MiB: a tenth and a third more time).
_BLOCK_BYTES = 1 << 20
# No line of a profiler comes near this; headers of wide counter tables have about 80 kB.
_LONGEST_LINE = 8 << 20
_INTEGER_LIMIT = 1 << 63


@frozen(eq=False)
class TextColumn:
    """A text column as distinct texts (in order of appearance) and the code of each row."""

    texts: tuple[str, ...]
    code: Int32Column


@attrs.define(eq=False)
class CsvColumns:
    """Typed columns by lower-case name; only columns that the file has are present."""

    row_count: int
    integers: dict[str, Int64Column]
    floats: dict[str, Float64Column]
    texts: dict[str, TextColumn]
    misshapen_rows: int
    unreadable: int  # values that are no integers; they read as -1
    rounded: dict[str, int]  # integers written with an exponent, per column
    averaged: dict[str, int]  # integers written with a fraction, per column

    def integer(self, name: str) -> Int64Column:
        """An integer column, all -1 where the file has none."""
        column = self.integers.get(name.lower())
        return np.full(self.row_count, NOT_RECORDED, np.int64) if column is None else column


class _Lines(io.TextIOWrapper):
    """Text whose lines end; one that does not would be read until the memory is full."""

    def __next__(self) -> str:  # type: ignore[override]  # the base class speaks of bytes
        line = self.readline(_LONGEST_LINE)
        if len(line) == _LONGEST_LINE:
            raise csv.Error(f"a line of more than {_LONGEST_LINE >> 20} MiB")
        if not line:
            raise StopIteration
        return line


class _Rest(io.RawIOBase):
    """What was taken from a stream already, and then the stream."""

    def __init__(self, taken: bytes, stream: io.BufferedReader) -> None:
        self._taken, self._stream = taken, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        part = self._taken[: len(view)] if self._taken else self._stream.read1(len(view))
        self._taken = self._taken[len(part) :]
        view[: len(part)] = part
        return len(part)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """The file's bytes, unpacked; damage of the packing or the rows surfaces as ``BadDataError``."""
    try:
        refuse_hollow(path)
        raw: io.BufferedReader = (
            io.BufferedReader(BoundedGzip(path)) if path.suffix == ".gz" else path.open("rb")
        )
        with raw:
            yield raw
    except (*GZIP_ERRORS, csv.Error) as error:
        how = "unpacked" if isinstance(error, (EOFError, zlib.error)) else "read as CSV"
        raise BadDataError(
            f"{path} can't be {how}: {error}", next_step="copy the file again, or record again"
        ) from error


@contextmanager
def open_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """The file as text; damage surfaces as ``BadDataError``."""
    with _opened(path) as raw, _Lines(raw, "utf-8-sig", "replace", newline="") as text:
        yield text


def csv_header(path: Path) -> tuple[str, ...]:
    """The column names; empty when the file has no text header. Reads one line, never raises."""
    try:
        with open_text(path) as text:
            line = text.readline(_LONGEST_LINE)
            if not line.strip() or "\0" in line:
                return ()
            return tuple(name.strip() for name in next(csv.reader([line])))
    except (BadDataError, csv.Error, StopIteration):
        return ()


def read_columns(
    path: Path,
    *,
    integers: Sequence[str] = (),
    floats: Sequence[str] = (),
    texts: Sequence[str] = (),
    names: Callable[[Sequence[str]], Sequence[str]] = tuple,
) -> CsvColumns:
    """Read the named columns that the file has. Raises ``BadDataError`` naming file and line.

    ``names`` gives the names to go by for those in the header, of which there are as many.
    """
    refuse_bomb(path)
    wanted = (integers, floats, texts)
    with _opened(path) as raw:
        taken = raw.read(_BLOCK_BYTES).removeprefix(codecs.BOM_UTF8)
        line, ended, rows = taken.partition(b"\n")
        header = _plain_header(line) if ended else None
        builder = None
        if header is not None:
            builder = _Builder(names(header), *wanted)
            taken = builder.add_blocks(rows, raw)
        lines = 0 if builder is None else 1 + builder.row_count
        with _Lines(io.BufferedReader(_Rest(taken, raw)), "utf-8", "replace", newline="") as text:
            reader = csv.reader(text)
            try:
                builder = builder or _Builder(names(next(reader, [])), *wanted)
                while chunk := list(islice(reader, _CHUNK_ROWS)):
                    builder.add(chunk)
            except csv.Error as error:
                raise BadDataError(
                    f"{path}, line {lines + reader.line_num}: {error}",
                    next_step="copy the file again, or record again",
                ) from error
    return builder.finished()


def _plain_header(line: bytes) -> list[str] | None:
    """The names in a first line that is a row of its own; ``None`` of an unusual one."""
    if b"\r" in line or b"\0" in line:
        return None
    try:
        return next(csv.reader([line.decode("utf-8", "replace")], strict=True), None)
    except csv.Error:
        return None


class _Builder:
    """Grows typed columns chunk by chunk; ``header`` are the names in the file's first row."""

    def __init__(
        self, header: Sequence[str], integers: Sequence[str], floats: Sequence[str], texts: Sequence[str]
    ) -> None:
        self.width = len(header)
        names = [name.strip().lower() for name in header]
        place = {name: index for index, name in reversed(list(enumerate(names)))}
        self.integers = {n.lower(): place[n.lower()] for n in integers if n.lower() in place}
        self.floats = {n.lower(): place[n.lower()] for n in floats if n.lower() in place}
        self.texts = {n.lower(): place[n.lower()] for n in texts if n.lower() in place}
        self.parts: dict[str, list[Int64Column | Float64Column | Int32Column]] = {
            n: [] for n in (*self.integers, *self.floats, *self.texts)
        }
        self.codes: dict[str, dict[str, int]] = {n: {} for n in self.texts}
        self.rounded = dict.fromkeys(self.integers, 0)
        self.averaged = dict.fromkeys(self.integers, 0)
        self.misshapen = self.unreadable = self.row_count = 0

    def add_blocks(self, taken: bytes, raw: io.BufferedReader) -> bytes:
        """Add plain rows as long as there are some; what was taken beyond them, from the begin of a line."""
        while whole := taken.rfind(b"\n") + 1:
            rows = plain_rows(taken[:whole], self.width)
            if rows is None:
                break
            self._add_plain(rows)
            taken = taken[whole:] + raw.read(_BLOCK_BYTES)
        return taken

    def _add_plain(self, rows: PlainRows) -> None:
        self.row_count += len(rows)
        for name, at in self.integers.items():
            numbers = rows.decimals(at)
            self.parts[name].append(self._integers(name, rows.texts(at)) if numbers is None else numbers)
        for name, at in self.floats.items():
            try:
                values = [*map(float, rows.fields(at))]
            except ValueError:
                values = [*map(_float, rows.texts(at))]
            self.parts[name].append(np.array(values, np.float64))
        for name, at in self.texts.items():
            distinct, number = rows.coded(at)
            codes = self.codes[name]
            # Other bytes may be the same text where they are no UTF-8.
            texts = (field.decode("utf-8", "replace") for field in distinct)
            code = np.array([codes.setdefault(text, len(codes)) for text in texts], np.int32)
            self.parts[name].append(code[number])

    def add(self, rows: list[list[str]]) -> None:
        whole = [row for row in rows if len(row) == self.width]
        self.misshapen += sum(bool(row) for row in rows) - len(whole)
        self.row_count += len(whole)
        for name, at in self.integers.items():
            self.parts[name].append(self._integers(name, [row[at] for row in whole]))
        for name, at in self.floats.items():
            self.parts[name].append(np.fromiter((_float(row[at]) for row in whole), np.float64, len(whole)))
        for name, at in self.texts.items():
            codes = self.codes[name]
            numbers = (codes.setdefault(row[at], len(codes)) for row in whole)
            self.parts[name].append(np.fromiter(numbers, np.int32, len(whole)))

    def _integers(self, name: str, values: list[str]) -> Int64Column:
        try:
            return np.fromiter(map(int, values), np.int64, len(values))
        except (ValueError, OverflowError):
            numbers = np.fromiter((_integer(value) for value in values), np.int64, len(values))
            self.rounded[name] += sum("e" in v.lower() for v in values)
            self.averaged[name] += sum(_has_fraction(v) for v in values)
            self.unreadable += sum(
                number == NOT_RECORDED and bool(value.strip())
                for number, value in zip(numbers.tolist(), values, strict=True)
            )
            return numbers

    def finished(self) -> CsvColumns:
        def joined(names: dict[str, int], kind: type) -> dict[str, np.ndarray]:
            return {n: np.concatenate([np.empty(0, kind), *self.parts[n]]).astype(kind) for n in names}

        codes = joined(self.texts, np.int32)
        return CsvColumns(
            row_count=self.row_count,
            integers=joined(self.integers, np.int64),
            floats=joined(self.floats, np.float64),
            texts={n: TextColumn(tuple(self.codes[n]), codes[n]) for n in self.texts},
            misshapen_rows=self.misshapen,
            unreadable=self.unreadable,
            rounded={n: count for n, count in self.rounded.items() if count},
            averaged={n: count for n, count in self.averaged.items() if count},
        )


def _integer(text: str) -> int:
    """An integer, also one that a spreadsheet wrote as ``8.1E+14``; -1 where there is none."""
    try:
        value = int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return NOT_RECORDED
        if not np.isfinite(number):
            return NOT_RECORDED
        value = int(number)
    return value if abs(value) < _INTEGER_LIMIT else NOT_RECORDED


def _has_fraction(text: str) -> bool:
    return "e" not in text.lower() and bool(text.partition(".")[2].strip("0 "))


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


# Many CSV rows at once, as positions in their bytes: what profilers write as a rule, and nothing else.
#
# ``plain_rows`` says ``None`` of everything that the csv module might read in another way (rows of another
# length, quotes inside of fields, carriage returns); who asks then lets the csv module read.

_COMMA, _NEWLINE, _QUOTE = b',\n"'
#: Digits whose number fits 64 bits whatever they are.
_MOST_DIGITS = 18


@frozen(eq=False)
class PlainRows:
    """Fields of ``data`` without their quotes: ``begin`` and ``end`` (columns, rows) are positions in it."""

    data: bytes
    begin: Int64Column
    end: Int64Column

    def __len__(self) -> int:
        return int(self.begin.shape[1])

    def fields(self, column: int, most: int | None = None) -> list[bytes]:
        """Those of the first ``most`` rows, or of all."""
        data = self.data
        places = zip(self.begin[column, :most].tolist(), self.end[column, :most].tolist(), strict=True)
        return [data[begin:end] for begin, end in places]

    def coded(self, column: int) -> tuple[list[bytes], Int32Column]:
        """The distinct fields in order of appearance, and the number of each row's."""
        if self._is_constant(column):
            return self.fields(column, 1), np.zeros(len(self), np.int32)
        fields = self.fields(column)
        number = {field: code for code, field in enumerate(dict.fromkeys(fields))}
        return list(number), np.fromiter(map(number.__getitem__, fields), np.int32, len(fields))

    def _is_constant(self, column: int) -> bool:
        """Whether all rows have the same short field; of a longer one "no" costs less than to look."""
        begin, length = self.begin[column], self.end[column] - self.begin[column]
        if int(length[0]) > _MOST_DIGITS or bool((length != length[0]).any()):
            return False
        data = np.frombuffer(self.data, np.uint8)
        return all(bool((data[begin + i] == data[begin[0] + i]).all()) for i in range(int(length[0])))

    def texts(self, column: int) -> list[str]:
        return [field.decode("utf-8", "replace") for field in self.fields(column)]

    def decimals(self, column: int) -> Int64Column | None:
        """The column as integers; ``None`` unless each field is 1 to 18 decimal digits."""
        begin, end = self.begin[column], self.end[column]
        if not len(begin):
            return np.empty(0, np.int64)
        length = end - begin
        longest, shortest = int(length.max()), int(length.min())
        if shortest < 1 or longest > _MOST_DIGITS:
            return None
        digits = np.frombuffer(self.data, np.uint8)
        value = np.zeros(len(begin), np.int64)
        wrong = np.zeros(len(begin), np.bool_)
        for place in range(longest, 0, -1):
            # Of shorter fields a byte before them is read, which stands for nothing.
            digit = digits[np.maximum(end - place, 0)] - np.uint8(ord("0"))
            if place > shortest:
                digit = np.where(length >= place, digit, np.uint8(0))
            wrong |= digit > 9
            value *= 10
            value += digit
        return None if wrong.any() else value


def plain_rows(data: bytes, width: int) -> PlainRows | None:
    """The rows of ``data``, which ends with a line feed; ``None`` unless all are plain rows of ``width``."""
    if b"\r" in data or b"\0" in data:
        return None
    bytes_of = np.frombuffer(data, np.uint8)
    special = np.flatnonzero((bytes_of == _COMMA) | (bytes_of == _NEWLINE) | (bytes_of == _QUOTE))
    kind = bytes_of[special]
    quotes = kind == _QUOTE
    quote_count = int(np.count_nonzero(quotes))
    if quote_count % 2:
        return None
    if quote_count:
        outside = ~quotes & (np.cumsum(quotes, dtype=np.int32) % 2 == 0)
        special, kind = special[outside], kind[outside]
    if special.size == 0 or special.size % width:
        return None
    is_end = kind.reshape(-1, width) == _NEWLINE
    if not is_end[:, -1].all() or is_end[:, :-1].any():
        return None
    end = special
    begin = np.append(0, end[:-1] + 1)
    if int((end - begin).max()) > csv.field_size_limit():
        return None
    if quote_count:
        quoted = (
            (bytes_of[begin] == _QUOTE) & (bytes_of[np.maximum(end - 1, 0)] == _QUOTE) & (end - begin > 1)
        )
        if 2 * int(np.count_nonzero(quoted)) != quote_count:
            return None  # a quote that neither opens nor closes a field
        begin, end = begin + quoted, end - quoted
    columns = (np.ascontiguousarray(column.reshape(-1, width).T) for column in (begin, end))
    return PlainRows(data, *columns)
