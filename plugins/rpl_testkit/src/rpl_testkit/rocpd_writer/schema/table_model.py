"""How a rocpd table is described, and its description rendered as SQL.

Knows columns, versions and the suffix that every physical table carries; the tables themselves are in
`schema_tables.py`.
"""

from __future__ import annotations

from rpl_core.values import frozen

__all__ = ["Column", "Table", "create_plain_view", "create_table", "quoted"]


@frozen
class Column:
    """One column: declared type, constraint text, and the table whose id it refers to."""

    name: str
    type: str
    constraint: str = ""
    refers_to: str | None = None
    since: int = 0


@frozen
class Table:
    """A table by its plain name (`rocpd_string`), with the patch level that introduced it."""

    name: str
    columns: tuple[Column, ...]
    since: int = 0
    has_guid: bool = True

    def columns_at(self, level: int) -> tuple[Column, ...]:
        """Return the columns, without id and guid, that exist at patch level `level`."""
        return tuple(column for column in self.columns if column.since <= level)


def quoted(name: str) -> str:
    """Quote an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def create_table(table: Table, level: int, guid: str, suffix: str) -> str:
    """Return the CREATE TABLE statement of the physical table `<name><suffix>`."""
    lines = ['"id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT']
    if table.has_guid:
        lines.append(f'"guid" TEXT NOT NULL DEFAULT {_literal(guid)}')
    columns = table.columns_at(level)
    lines += [f"{quoted(c.name)} {c.type} {_constraint_at(c, level)}".rstrip() for c in columns]
    lines += [
        f'FOREIGN KEY ({quoted(c.name)}) REFERENCES {quoted(c.refers_to + suffix)} ("id") ON UPDATE CASCADE'
        for c in columns
        if c.refers_to
    ]
    body = ",\n  ".join(lines)
    return f"CREATE TABLE {quoted(table.name + suffix)} (\n  {body}\n)"


def _constraint_at(column: Column, level: int) -> str:
    # Agents and counters of network cards are allowed from schema 3.0.1 on (docs/reference/formats.md, 2.2).
    return column.constraint.replace("'GPU')", "'GPU', 'NIC')") if level >= 1 else column.constraint


def create_plain_view(table: Table, suffix: str) -> str:
    """Return the view that gives the table its plain name."""
    # S608: both names are constants of this package plus the guid, and quoted.
    return f"CREATE VIEW {quoted(table.name)} AS SELECT * FROM {quoted(table.name + suffix)}"
