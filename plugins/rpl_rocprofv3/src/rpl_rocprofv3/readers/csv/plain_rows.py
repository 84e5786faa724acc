"""Many CSV rows at once, as positions in their bytes: what profilers write as a rule, and nothing else.

``plain_rows`` says ``None`` of everything that the csv module might read in another way (rows of another
length, quotes inside of fields, carriage returns); who asks then lets the csv module read.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.trace import Int32Column, Int64Column

__all__ = ["PlainRows", "plain_rows"]

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
