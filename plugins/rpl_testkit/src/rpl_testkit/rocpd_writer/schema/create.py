"""Create an empty rocpd file: tables with their suffix, plain-name views and data views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.rocpd_writer.schema.table_model import create_plain_view, create_table
from rpl_testkit.rocpd_writer.schema.tables import tables_at
from rpl_testkit.rocpd_writer.schema.view_model import create_view
from rpl_testkit.rocpd_writer.schema.views_counters import counter_views
from rpl_testkit.rocpd_writer.schema.views_info import INFO_VIEWS
from rpl_testkit.rocpd_writer.schema.views_regions import REGION_VIEWS
from rpl_testkit.rocpd_writer.schema.views_summary import SUMMARY_VIEWS
from rpl_testkit.rocpd_writer.schema.views_work import WORK_VIEWS

if TYPE_CHECKING:
    import sqlite3

    from rpl_testkit.rocpd_writer.schema.view_model import SqlView, View

__all__ = ["create_schema", "table_suffix"]


def table_suffix(guid: str) -> str:
    """Return what is appended to every physical table name: `_` + guid with underscores."""
    return "_" + guid.replace("-", "_")


def create_schema(connection: sqlite3.Connection, level: int, guid: str) -> None:
    """Create all tables and views of patch level `level` in an empty database."""
    suffix = table_suffix(guid)
    tables = tables_at(level)
    for table in tables:
        connection.execute(create_table(table, level, guid, suffix))
    for table in tables:
        connection.execute(create_plain_view(table, suffix))
    for view in _views_at(level):
        connection.execute(create_view(view, level))


def _views_at(level: int) -> list[View | SqlView]:
    views: tuple[View | SqlView, ...] = (
        *INFO_VIEWS,
        *REGION_VIEWS,
        *WORK_VIEWS,
        *counter_views(level),
        *SUMMARY_VIEWS,
    )
    return [view for view in views if view.since <= level]
