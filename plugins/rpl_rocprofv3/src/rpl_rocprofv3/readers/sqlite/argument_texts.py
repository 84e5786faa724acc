"""Arguments of API calls by name, in bulk: ``rocpd_arg`` holds one row of text per argument.

A recording has millions of these rows and few distinct texts. As with number columns the database pages
are decoded directly where that is certain, and SQL is the general way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import group_keys, mixed_key
from rpl_rocprofv3.readers.sqlite.leaves import UnsupportedLayoutError
from rpl_rocprofv3.readers.sqlite.pages import open_pages, table_layout
from rpl_rocprofv3.readers.sqlite.records import Records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns import IntegerColumn
    from rpl_rocprofv3.readers.sqlite.tables import Table

    Bytes = NDArray[np.uint8]

__all__ = ["ArgumentTexts", "read_arguments"]

_COLUMNS = ("event_id", "name", "value")
_WORD_BYTES = 8
# Longer texts are no pointers and no numbers; they count as one text that says nothing.
_LONGEST_TEXT = 24
_LONG = "(long text)"
_FIRST_TEXT_TYPE = 13


@frozen(eq=False)
class ArgumentTexts:
    """All arguments of one name: the event of each, and its text as ``texts[code]``."""

    event_id: IntegerColumn
    code: Int32Column
    texts: tuple[object, ...]


def read_arguments(database: Database, table: Table, names: Sequence[str]) -> dict[str, ArgumentTexts]:
    """The arguments called one of ``names`` (at most eight letters), in order of the row id."""
    if table.guid is None:
        try:
            return _by_pages(database, table.name, names)
        except (UnsupportedLayoutError, KeyError):
            pass
    return _by_sql(database, table, names)


def _by_sql(database: Database, table: Table, names: Sequence[str]) -> dict[str, ArgumentTexts]:
    events: dict[str, list[int]] = {name: [] for name in names}
    codes: dict[str, list[int]] = {name: [] for name in names}
    texts: dict[str, dict[object, int]] = {name: {} for name in names}
    # The names are constants of the calling module.
    condition = f"name IN ({', '.join(repr(name) for name in names)})"
    for event, name, value in table.rows(database.connection, _COLUMNS, condition):
        if isinstance(event, int):
            events[name].append(event)
            codes[name].append(texts[name].setdefault(value, len(texts[name])))
    return {
        name: ArgumentTexts(
            np.array(events[name], np.int64), np.array(codes[name], np.int32), tuple(texts[name])
        )
        for name in names
    }


def _by_pages(database: Database, table: str, names: Sequence[str]) -> dict[str, ArgumentTexts]:
    layout = table_layout(database.connection, table)
    event, name_place, value = (layout.places[column] for column in _COLUMNS)
    if not event < name_place < value or not _is_utf8(database):
        raise UnsupportedLayoutError
    found = {name: _Collected() for name in names}
    with open_pages(database) as (pages, usable_bytes):
        for buffer, _ in pages.batches(pages.leaves(layout.root)):
            records = Records(buffer, pages.page_bytes, usable_bytes, value + 1, long_last=True)
            columns = {place: (types, at) for place, types, at in records.values()}
            ids = records.columns({event: False})[event].values
            for name, collected in found.items():
                rows = _rows_with_text(records, *columns[name_place], name.encode())
                collected.add(ids[rows], *_text_words(records, rows, *columns[value]))
    return {name: collected.finished() for name, collected in found.items()}


def _is_utf8(database: Database) -> bool:
    return bool(database.connection.execute("PRAGMA encoding").fetchone() == ("UTF-8",))


def _rows_with_text(records: Records, types: Bytes, at: NDArray[np.int64], text: bytes) -> NDArray[np.int64]:
    """Rows whose value is exactly ``text`` (at most eight bytes)."""
    rows = np.flatnonzero(types == _FIRST_TEXT_TYPE + 2 * len(text))
    (word,) = records.text_key(rows, at, 1)
    wanted = np.uint64(int.from_bytes(text, "big"))
    return np.asarray(rows[(word >> np.uint64(8 * (_WORD_BYTES - len(text)))) == wanted])


def _text_words(
    records: Records, rows: NDArray[np.int64], types: Bytes, at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], tuple[NDArray[np.uint64], ...]]:
    """Length of each text (-1: no text, beyond the limit: a long one), and its bytes as three words."""
    kind = types[rows].astype(np.int64)
    length = np.where((kind & 1 == 1) & (kind >= _FIRST_TEXT_TYPE), (kind - _FIRST_TEXT_TYPE) // 2, -1)
    length[kind > 0x7F] = _LONGEST_TEXT + 1
    short = np.where((length >= 0) & (length <= _LONGEST_TEXT), length, 0)
    words = []
    for number, word in enumerate(records.text_key(rows, at, _LONGEST_TEXT // _WORD_BYTES)):
        missing = np.clip(_WORD_BYTES * (number + 1) - short, 0, _WORD_BYTES).astype(np.uint64)
        # Shifting by 64 bits is undefined, hence in two steps.
        half = missing * np.uint64(4)
        words.append(((word >> half) >> half) << half << half)
    return length, tuple(words)


@attrs.define(eq=False)
class _Collected:
    """The arguments of one name, batch by batch."""

    events: list[NDArray[np.int64]] = attrs.field(factory=list)
    lengths: list[NDArray[np.int64]] = attrs.field(factory=list)
    words: list[tuple[NDArray[np.uint64], ...]] = attrs.field(factory=list)

    def add(
        self, events: NDArray[np.int64], lengths: NDArray[np.int64], words: tuple[NDArray[np.uint64], ...]
    ) -> None:
        self.events.append(events)
        self.lengths.append(lengths)
        self.words.append(words)

    def finished(self) -> ArgumentTexts:
        if not self.events:
            return ArgumentTexts(np.empty(0, np.int64), np.empty(0, np.int32), ())
        columns = [np.concatenate(self.lengths), *(np.concatenate(w) for w in zip(*self.words, strict=True))]
        first, code = group_keys(mixed_key(columns))
        if not all(np.array_equal(column, column[first][code]) for column in columns):
            raise UnsupportedLayoutError  # two texts with one key
        texts = tuple(_text(*(int(column[row]) for column in columns)) for row in first.tolist())
        return ArgumentTexts(np.concatenate(self.events), code, texts)


def _text(length: int, *words: int) -> object:
    if length < 0:
        return None
    if length > _LONGEST_TEXT:
        return _LONG
    return b"".join(word.to_bytes(_WORD_BYTES, "big") for word in words)[:length].decode("utf-8", "replace")
