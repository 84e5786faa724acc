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
_TOO_LONG = _LONGEST_TEXT + 1
#: Length of a text by the first byte of its serial type, which has a second byte for long texts.
_LENGTHS = np.full(256, _TOO_LONG)
_LENGTHS[:_FIRST_TEXT_TYPE] = _LENGTHS[_FIRST_TEXT_TYPE + 1 : 0x80 : 2] = -1
_LENGTHS[_FIRST_TEXT_TYPE:0x80:2] = np.minimum(np.arange(58), _TOO_LONG)
#: By length which bytes of the words belong to the text: none of one that is too long, or no text (last).
_OWN_BYTES = np.zeros((_TOO_LONG + 2, _LONGEST_TEXT), np.uint8)
_OWN_BYTES[:_TOO_LONG] = np.where(np.tri(_TOO_LONG, _LONGEST_TEXT, -1), 0xFF, 0)
_OWN_WORDS = _OWN_BYTES.view(">u8").astype(np.uint64)


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
            records = Records(
                *(buffer, pages.page_bytes, usable_bytes, value + 1),
                long_last=True,
                only=(name_place, [_text_type(name) for name in names]),  # most arguments have other names
            )
            columns = {place: (types, at) for place, types, at in records.values()}
            ids = records.columns({event: False})[event].values
            types, at = columns[name_place]
            called = records.text_words(at, 1)[:, 0]
            length, words = _texts(records, *columns[value])
            for name, collected in found.items():
                rows = np.flatnonzero(_equal(called, types, name))
                collected.add(ids[rows], length.take(rows), words.take(rows, axis=0))
    return {name: collected.finished() for name, collected in found.items()}


def _is_utf8(database: Database) -> bool:
    return bool(database.connection.execute("PRAGMA encoding").fetchone() == ("UTF-8",))


def _text_type(text: str) -> int:
    return _FIRST_TEXT_TYPE + 2 * len(text)


def _equal(words: NDArray[np.uint64], types: Bytes, text: str) -> NDArray[np.bool_]:
    """Whether values that begin with the eight bytes are exactly ``text`` (at most eight letters)."""
    wanted = np.uint64(int.from_bytes(text.encode(), "big"))
    same: NDArray[np.bool_] = words >> np.uint64(8 * (_WORD_BYTES - len(text))) == wanted
    same &= types == _text_type(text)
    return same


def _texts(
    records: Records, types: Bytes, at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Length of each text (-1: no text, beyond the limit: a long one), and its bytes as words."""
    length = _LENGTHS[types]
    words = records.text_words(at, _LONGEST_TEXT // _WORD_BYTES)
    words &= _OWN_WORDS.take(length, axis=0)
    return length, words


@attrs.define(eq=False)
class _Collected:
    """The arguments of one name, batch by batch."""

    events: list[NDArray[np.int64]] = attrs.field(factory=list)
    lengths: list[NDArray[np.int64]] = attrs.field(factory=list)
    words: list[NDArray[np.uint64]] = attrs.field(factory=list)

    def add(self, events: NDArray[np.int64], lengths: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
        self.events.append(events)
        self.lengths.append(lengths)
        self.words.append(words)

    def finished(self) -> ArgumentTexts:
        if not self.events:
            return ArgumentTexts(np.empty(0, np.int64), np.empty(0, np.int32), ())
        columns = [np.concatenate(self.lengths), *np.concatenate(self.words).T]
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
