"""Emptying the environment that rocprofv3 writes into its databases.

``rocpd_info_process.environment`` holds every environment variable of the application, API keys included
(docs/reference/formats.md, trap 9), and run directories are made to be shared. The column is overwritten and
never read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rpl_core.model.diagnostic import Diagnostic

_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd\\_info\\_process%' ESCAPE '\\'"
)
_BUSY_S = 2.0


def remove_environments(databases: Sequence[Path]) -> tuple[Diagnostic, ...]:
    """Overwrite the environments in place; one warning for the files in which that failed."""
    failed = [path for path in databases if not _remove(path)]
    if not failed:
        return ()
    return (
        Diagnostic(
            code="collect.environment_kept",
            fact=f"the environment variables that rocprofv3 wrote to {failed[0].name} could not be removed",
            cause="the file is damaged, or there is no space to change it",
            remedy="do not share the file",
            count=len(failed),
        ),
    )


def _remove(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection, connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA secure_delete = ON")  # also the bytes on freed pages
            for (table,) in connection.execute(_TABLES).fetchall():
                _empty(connection, table)
    except sqlite3.Error:
        return False
    return True


def _empty(connection: sqlite3.Connection, table: str) -> None:
    quoted = '"' + table.replace('"', '""') + '"'
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted})")]
    if "environment" in columns:
        connection.execute(f"UPDATE {quoted} SET environment = '{{}}'")  # noqa: S608 quoted above
