"""How a data view of a rocpd file is described, and its description rendered as SQL.

A view is a base table, joins that always compare the guid too (ids are only unique per guid), and named
expressions. The views themselves are in `views_*.py`.
"""

from __future__ import annotations

import attrs

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.schema.table_model import quoted

__all__ = ["Join", "SqlView", "View", "create_view", "left", "must", "same"]


@frozen
class Join:
    """A join on `alias.column = on` with equal guid; `keep` keeps rows without a partner."""

    table: str
    alias: str
    on: str
    column: str = "id"
    keep: bool = False


@frozen
class View:
    """A view over `base` with result columns as name to expression, in order."""

    name: str
    base: str
    alias: str
    joins: tuple[Join, ...]
    columns: dict[str, str]
    tail: str = ""
    since: int = 0
    columns_since: dict[str, int] = attrs.field(factory=dict)

    def columns_at(self, level: int) -> dict[str, str]:
        """Return the columns that exist at patch level `level`."""
        return {name: sql for name, sql in self.columns.items() if self.columns_since.get(name, 0) <= level}


@frozen
class SqlView:
    """A view that is no join of tables, given as its whole SELECT."""

    name: str
    select: str
    since: int = 0


def must(table: str, alias: str, on: str, column: str = "id") -> Join:
    """Join that drops rows without a partner, as the real views do (docs/reference/formats.md, trap 7)."""
    return Join(f"rocpd_{table}", alias, on, column)


def left(table: str, alias: str, on: str) -> Join:
    """Join that keeps rows without a partner."""
    return Join(f"rocpd_{table}", alias, on, keep=True)


def same(alias: str, names: str) -> dict[str, str]:
    """Return the columns `names` of `alias` under their own names."""
    return {name: f"{alias}.{quoted(name)}" for name in names.split()}


def create_view(view: View | SqlView, level: int) -> str:
    """Return the CREATE VIEW statement at patch level `level`."""
    if isinstance(view, SqlView):
        return f"CREATE VIEW {quoted(view.name)} AS\n{view.select}"
    columns = ",\n  ".join(f"{sql} AS {quoted(name)}" for name, sql in view.columns_at(level).items())
    lines = [f"SELECT\n  {columns}", f"FROM {view.base} AS {view.alias}"]
    for join in view.joins:
        kind = "LEFT JOIN" if join.keep else "JOIN"
        owner = join.on.split(".", 1)[0]
        match = f"{join.alias}.{join.column} = {join.on} AND {join.alias}.guid = {owner}.guid"
        lines.append(f"{kind} {join.table} AS {join.alias} ON {match}")
    if view.tail:
        lines.append(view.tail)
    return f"CREATE VIEW {quoted(view.name)} AS\n" + "\n".join(lines)
