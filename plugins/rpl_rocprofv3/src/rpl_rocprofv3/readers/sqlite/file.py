"""Opens a database of the user without changing it, its folder or its companions.

A database whose write-ahead log or rollback journal holds changes is copied with them to a temporary
folder and read there, because SQLite would create or rewrite files beside the original. Compressed
databases are unpacked there too, within a size limit.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_rocprofv3.readers.gzip_limits import unpack
from rpl_rocprofv3.readers.sqlite.header import header_problem, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Database", "open_database"]

_COMPANIONS = ("-wal", "-journal")
_STEPS_AT_LEAST = 100_000_000
_STEPS_PER_BYTE = 50
_STEPS_PER_CHECK = 1_000_000


@frozen(eq=False)
class Database:
    """An open read-only connection. ``path`` is the user's file, ``file`` the one that is read."""

    connection: sqlite3.Connection
    path: Path
    file: Path


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open ``path`` (``.gz`` allowed) read-only. Raises ``BadDataError``; SQLite errors become one too."""
    with tempfile.TemporaryDirectory(prefix="rpl-read-") as folder:
        try:
            file = _readable_file(path, Path(folder))
            uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
                connection.execute("PRAGMA query_only = ON")
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.set_progress_handler(_step_budget(file), _STEPS_PER_CHECK)
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                yield Database(connection, path, file)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            # SQLite quotes damaged names in its messages, which then are no UTF-8.
            raise BadDataError(
                f"{path} can't be read as SQLite: {error}",
                cause="the file is damaged, or was copied while it was written",
                next_step="run `sqlite3 FILE 'PRAGMA integrity_check'`, or record again",
            ) from error


def _step_budget(file: Path) -> Callable[[], int]:
    """Ends a query after more steps than reading the whole file several times could take.

    A file may hold a view that never ends; every query of the readers is a plain scan.
    """
    left = _STEPS_AT_LEAST + _STEPS_PER_BYTE * file.stat().st_size

    def spent() -> int:
        nonlocal left
        left -= _STEPS_PER_CHECK
        return int(left < 0)

    return spent


def _readable_file(path: Path, folder: Path) -> Path:
    """The file to open: the original where that leaves no trace, else a private copy."""
    if path.suffix == ".gz":
        file = folder / path.stem
        unpack(path, file)
        _refuse_broken(path, file)
        return file
    _refuse_broken(path, path)
    pending = [c for c in (path.with_name(path.name + s) for s in _COMPANIONS) if _holds_changes(c)]
    return _settled_copy(path, pending, folder) if pending else path


def _holds_changes(companion: Path) -> bool:
    return companion.exists() and companion.stat().st_size > 0


def _refuse_broken(path: Path, file: Path) -> None:
    problem = header_problem(file)
    if problem:
        raise BadDataError(f"{path}: {problem}", next_step="record again or copy the file again")


def _settled_copy(path: Path, pending: list[Path], folder: Path) -> Path:
    """Copy the database with its log and let SQLite work the log into the copy."""
    sources = [path, *pending]
    needed = 2 * sum(source.stat().st_size for source in sources)
    if shutil.disk_usage(folder).free < needed:
        raise BadDataError(
            f"{path} has unfinished changes in {pending[0].name} and reading them needs a copy of "
            f"{needed // 1_000_000 + 1} MB, which does not fit in {folder.parent}",
            next_step="set TMPDIR to a larger folder, or close the program that writes the database",
        )
    before = [_state(source) for source in sources]
    for source in sources:
        shutil.copyfile(source, folder / source.name)
    if before != [_state(source) for source in sources]:
        raise BadDataError(
            f"{path} is being written while it is read", next_step="wait until the profiled program ended"
        )
    copy = folder / path.name
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        header = read_header(copy)
        if header is None or header.write_ahead:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    return copy


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
