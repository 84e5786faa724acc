"""The parts of a rocpd database: one per guid, each with its own tables.

A file of one process has one part; a merged file has several, whose plain views are unions. Physical
tables are preferred because a view over ``rocpd_info_process`` would expand to all of its columns, and
its environment column holds secrets (docs/reference/formats.md, trap 9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_rocprofv3.readers.sqlite.tables import Table, Tables, quoted

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Part", "parts_of"]

_ANCHOR = "rocpd_info_process"


@frozen(eq=False)
class Part:
    """The tables of one guid. Table names are given without prefix ``rocpd_`` and without suffix."""

    connection: sqlite3.Connection
    guid: str
    _catalogue: Tables
    _suffix: str
    _restricted: bool

    def table(self, base: str) -> Table | None:
        """The table ``rocpd_<base>`` of this part, or None."""
        name = f"rocpd_{base}"
        physical = self._catalogue.get(name + self._suffix)
        if physical is not None and not self._restricted:
            return physical
        table = physical or self._catalogue.get(name)
        if table is None or "guid" not in table.columns:
            return table
        return attrs.evolve(table, guid=self.guid)


def parts_of(connection: sqlite3.Connection) -> tuple[Part, ...]:
    """All parts in order of guid."""
    catalogue = Tables(connection)
    suffixes = [
        name[len(_ANCHOR) :]
        for name in catalogue.names()
        if name.startswith(_ANCHOR) and name != _ANCHOR and catalogue.is_table(name)
    ]
    parts = [part for suffix in suffixes or [""] for part in _parts_with(connection, catalogue, suffix)]
    return tuple(sorted(parts, key=lambda part: part.guid))


def _parts_with(connection: sqlite3.Connection, catalogue: Tables, suffix: str) -> list[Part]:
    anchor = catalogue.get(_ANCHOR + suffix)
    if anchor is None or "guid" not in anchor.columns:
        return [Part(connection, suffix.lstrip("_"), catalogue, suffix, False)]
    rows = connection.execute(f"SELECT DISTINCT guid FROM {quoted(anchor.name)}").fetchall()  # noqa: S608
    guids = sorted(str(row[0]) for row in rows) or [suffix.lstrip("_").replace("_", "-")]
    return [Part(connection, guid, catalogue, suffix, len(guids) > 1) for guid in guids]
