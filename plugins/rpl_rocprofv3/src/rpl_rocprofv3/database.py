"""The one place where SQLite databases are opened: read-only, within limits, and without leaving a trace.

A recording comes from anywhere, and SQLite does what a file says: views compute, and journals delete files
and rewrite pages. Hence

- only stored rows are read: plain tables, and views that show columns of plain tables and nothing else;
- a database whose write-ahead log or rollback journal holds changes is copied with them to a temporary
  folder and read there; a journal that names another file (a super-journal, which SQLite would delete) is
  refused. Compressed databases are unpacked there too, within a size limit;
- steps and texts of a connection are counted against a budget that follows the size of the file;
- the recorded environment of the application can't be read.

https://www.sqlite.org/security.html, https://www.sqlite.org/fileformat2.html (section 3 for journals)
"""

from __future__ import annotations

import shutil
import sqlite3
import stat
import sys
import tempfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_rocprofv3.readers.gzip_limits import hollow, stored_bytes, unpack
from rpl_rocprofv3.readers.sqlite.tables import header_problem, plain_schema, quoted, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rpl_rocprofv3.readers.sqlite.tables import PlainSchema

__all__ = ["Database", "empty_column", "open_database"]

_COMPANIONS = ("-wal", "-journal")
#: Ends a journal that names a super-journal, behind the length and check sum of that name.
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_STEPS_AT_LEAST = 100_000_000
_STEPS_PER_BYTE = 50
_STEPS_PER_CHECK = 1_000_000
#: Kernel names of template libraries reach some 100 kB.
_LONGEST_TEXT = 4 << 20
_LONGEST_ROW = 64 << 20
_TEXTS_AT_LEAST = 64 << 20
_TEXTS_PER_BYTE = 4
_COPIED_AT_ONCE = 1 << 20
_BUSY_S = 2.0
_FUNCTIONS = frozenset({"count", "min", "max"})
_PRAGMAS = frozenset({"table_info", "table_xinfo", "encoding"})
_NEVER_READ = "environment"


@frozen(eq=False)
class Database:
    """An open read-only connection. ``path`` is the user's file, ``file`` the one that is read."""

    connection: sqlite3.Connection
    path: Path
    file: Path


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open ``path`` (``.gz`` allowed) read-only. Raises ``BadDataError``; SQLite errors become one too."""
    budget = _Budget(path)
    with ExitStack() as stack:

        def folder() -> Path:  # of the few files that need one: to remove it took most of opening a file
            return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rpl-read-")))

        try:
            before = _state(path)
            file = _readable_file(path, folder, budget)
            with closing(_connected(file, budget)) as connection:
                connection.execute("PRAGMA query_only = ON")
                connection.set_authorizer(_Allowed(plain_schema(connection), budget))
                yield Database(connection, path, file)
            if before != _state(path):
                raise _being_written(path)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            # SQLite quotes damaged names in its messages, which then are no UTF-8.
            raise budget.explained(error) from error


def empty_column(path: Path, table_prefix: str, column: str, value: str) -> bool:
    """Overwrite ``column`` in all tables that begin so, in place, old bytes included. False where it failed.

    For fresh recordings in rpl's own run directory. Triggers, checks and foreign journals do not run.
    """
    budget = _Budget(path)
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return False  # writing would change a file elsewhere
        _refuse_super_journal(path, path)
        with closing(_connected(path, budget, writes=True)) as connection, connection:
            connection.execute("PRAGMA secure_delete = ON")  # also the bytes on freed pages
            connection.execute("PRAGMA ignore_check_constraints = ON")
            schema = plain_schema(connection)
            connection.set_authorizer(_Allowed(schema, budget, emptied=column))
            for table in sorted(name for name in schema.tables if name.startswith(table_prefix)):
                if column in {row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")}:
                    connection.execute(f"UPDATE {quoted(table)} SET {column} = ?", (value,))  # noqa: S608
    except (sqlite3.Error, OSError) as error:
        budget.explained(error)
        return False
    except BadDataError:
        return False
    return True


def _connected(file: Path, budget: _Budget, *, writes: bool = False) -> sqlite3.Connection:
    """The only connection to files of unknown origin. With ``writes`` to a file that nobody else may need."""
    mode = "mode=rw" if writes else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", timeout=_BUSY_S, uri=True)
    try:
        if sys.version_info >= (3, 11):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.text_factory = budget.text
        connection.execute("PRAGMA trusted_schema = OFF")
        budget.grow(stored_bytes(file))
        connection.set_progress_handler(budget.step, _STEPS_PER_CHECK)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


class _Allowed:
    """What statements may do, as SQLite asks while it compiles them: https://www.sqlite.org/c3ref/set_authorizer.html

    ``emptied`` is the one column that may be written.
    """

    def __init__(self, schema: PlainSchema, budget: _Budget, emptied: str | None = None) -> None:
        self._schema = schema
        self._budget = budget
        self._emptied = emptied

    def __call__(
        self, action: int, first: str | None, second: str | None, _database: str | None, source: str | None
    ) -> int:
        # ``source`` is the view or trigger that asks.
        if action == sqlite3.SQLITE_READ and second == _NEVER_READ:
            return sqlite3.SQLITE_IGNORE  # reads as NULL
        if self._may(action, first, second, source):
            return sqlite3.SQLITE_OK
        named = second if action == sqlite3.SQLITE_PRAGMA else first
        self._budget.refused = f"{source or named or 'a statement'} in it computes what it shows"
        return sqlite3.SQLITE_DENY

    def _may(self, action: int, first: str | None, second: str | None, source: str | None) -> bool:
        if source is not None and source not in self._schema.views:
            return False
        if action == sqlite3.SQLITE_READ:
            known = first in self._schema or first == "sqlite_master"
            return known and (first, second) not in self._schema.computed
        if action == sqlite3.SQLITE_FUNCTION:
            return source is None and second in _FUNCTIONS
        if action == sqlite3.SQLITE_PRAGMA:
            return first in _PRAGMAS and (second is None or second in self._schema)
        if self._emptied is not None and action == sqlite3.SQLITE_UPDATE:
            return second == self._emptied
        return action == sqlite3.SQLITE_SELECT or (
            self._emptied is not None and action == sqlite3.SQLITE_TRANSACTION
        )


class _Budget:
    """Steps and bytes of text that a connection may still take, and why it had to stop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps, self._texts = _STEPS_AT_LEAST, _TEXTS_AT_LEAST
        self.refused: str | None = None

    def grow(self, size: int) -> None:
        """Allow what reading ``size`` bytes several times takes."""
        self._steps += _STEPS_PER_BYTE * size
        self._texts += _TEXTS_PER_BYTE * size

    def step(self) -> int:
        """Called by SQLite while a statement runs; anything but 0 ends it."""
        self._steps -= _STEPS_PER_CHECK
        if self._steps >= 0:
            return 0
        self.refused = "reading it takes far longer than its size explains"
        return 1

    def text(self, raw: bytes) -> str:
        """Called by SQLite for every text."""
        self._texts -= len(raw)
        if len(raw) > _LONGEST_TEXT:
            raise sqlite3.DataError(f"a text of {len(raw):,} bytes; the longest that is read has 4 MiB")
        if self._texts < 0:
            raise sqlite3.DataError("its texts are far longer than its size explains")
        return raw.decode("utf-8", "replace")

    def explained(self, error: Exception) -> BadDataError:
        """The error of a reader. Raises ``KeyboardInterrupt`` where that ended the statement."""
        if str(error) == "interrupted" and self.refused is None:
            # What a signal handler raises inside of ``step`` reaches SQLite and goes no further.
            raise KeyboardInterrupt from error
        if self.refused is not None:
            return BadDataError(
                f"{self._path} can't be read: {self.refused}",
                cause="it was not written by a profiler",
                next_step="record again, and read no files that you do not trust",
            )
        return BadDataError(
            f"{self._path} can't be read as SQLite: {error}",
            cause="the file is damaged, or was copied while it was written",
            next_step="run `sqlite3 FILE 'PRAGMA integrity_check'`, or record again",
        )


def _readable_file(path: Path, folder: Callable[[], Path], budget: _Budget) -> Path:
    """The file to open: the original where that leaves no trace, else a private copy in a new ``folder``."""
    if path.suffix == ".gz":
        file = folder() / path.stem
        unpack(path, file)
        _refuse_broken(path, file)
        return file
    _refuse_broken(path, path)
    pending = [c for c in (path.with_name(path.name + s) for s in _COMPANIONS) if _holds_changes(c)]
    return _settled_copy(path, pending, folder(), budget) if pending else path


def _holds_changes(companion: Path) -> bool:
    return companion.is_file() and companion.stat().st_size > 0


def _refuse_broken(path: Path, file: Path) -> None:
    problem = hollow(file) or header_problem(file)
    if problem:
        raise BadDataError(f"{path}: {problem}", next_step="record again or copy the file again")


def _refuse_super_journal(path: Path, file: Path) -> None:
    """A journal may name another file, which SQLite deletes once it has rolled back the database."""
    journal = file.with_name(f"{file.name}-journal")
    if not journal.is_file():
        return
    with journal.open("rb") as stream:
        stream.seek(max(journal.stat().st_size - len(_JOURNAL_MAGIC), 0))
        named = stream.read() == _JOURNAL_MAGIC
    if named:
        raise BadDataError(
            f"{path} has unfinished changes in {journal.name}, which belong to a change of several databases",
            cause="it was not written by a profiler: those change one database at a time",
            next_step="record again, or delete the journal if you trust the database without it",
        )


def _settled_copy(path: Path, pending: list[Path], folder: Path, budget: _Budget) -> Path:
    """Copy the database with its log and let SQLite work the log into the copy."""
    sources = [path, *pending]
    before = [_state(source) for source in sources]
    size = sum(length for length, *_ in before)
    if shutil.disk_usage(folder).free < 2 * size:
        raise BadDataError(
            f"{path} has unfinished changes in {pending[0].name} and reading them needs a copy of "
            f"{2 * size // 1_000_000 + 1} MB, which does not fit in {folder.parent}",
            next_step="set TMPDIR to a larger folder, or close the program that writes the database",
        )
    for source, (length, *_) in zip(sources, before, strict=True):
        _copy_bytes(source, folder / source.name, length)
    if before != [_state(source) for source in sources]:
        raise _being_written(path)
    copy = folder / path.name
    _refuse_super_journal(path, copy)
    with closing(_connected(copy, budget, writes=True)) as connection:
        header = read_header(copy)
        if header is None or header.write_ahead:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if copy.stat().st_size > size:
        raise BadDataError(
            f"{path} would grow by its unfinished changes in {pending[0].name} to more than both files hold",
            next_step="record again",
        )
    return copy


def _copy_bytes(source: Path, target: Path, count: int) -> None:
    """The first ``count`` bytes: a file that grows all the time must not fill the disk."""
    with source.open("rb") as reader, target.open("wb") as writer:
        while count > 0 and (data := reader.read(min(count, _COPIED_AT_ONCE))):
            writer.write(data)
            count -= len(data)


def _being_written(path: Path) -> BadDataError:
    return BadDataError(
        f"{path} is being written while it is read", next_step="wait until the profiled program ended"
    )


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
