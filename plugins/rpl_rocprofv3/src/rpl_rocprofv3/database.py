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

import hashlib
import os
import re
import shutil
import sqlite3
import stat
import struct
import sys
import tempfile
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_rocprofv3.readers.gzip_limits import hollow, stored_bytes, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
_COPIED_AT_ONCE = _HASHED_AT_ONCE = 1 << 20
#: What lies between pieces is read for the hash up to this part of the file (chosen).
_LARGEST_GAP = 8
_BUSY_S = 2.0
_FUNCTIONS = frozenset({"count", "min", "max"})
_PRAGMAS = frozenset({"table_info", "table_xinfo", "encoding"})
_NEVER_READ = "environment"


@frozen(eq=False)
class Database:
    """An open read-only connection. ``path`` is the user's file, ``file`` the one that is read.

    ``passing`` hashes the user's file while its pages are read; None where another file is read.
    """

    connection: sqlite3.Connection
    path: Path
    file: Path
    passing: PassingHash | None = None


class PassingHash:
    """SHA-256 of a file most of which is read anyway: bytes are hashed as they come by.

    A hash takes the bytes in order. What lies between two pieces is read for it alone, unless that is much
    of the file: then it may still come by. What follows the last piece is read at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest = hashlib.sha256()
        self._hashed_bytes = 0
        self._block = memoryview(b"")
        self._file_bytes = path.stat().st_size

    def saw(self, descriptor: int, begin: int, data: memoryview) -> None:
        """Bytes of the file from ``begin`` on, which were read from ``descriptor``."""
        if 0 < begin - self._hashed_bytes <= self._file_bytes // _LARGEST_GAP:
            self._read(descriptor, begin)
        if begin <= self._hashed_bytes < begin + len(data):
            self._digest.update(data[self._hashed_bytes - begin :])
            self._hashed_bytes = begin + len(data)

    def finished(self) -> str:
        """The hash of the file, as large as it was, in hexadecimal; one that grew is refused."""
        with self._path.open("rb", buffering=0) as stream:
            self._read(stream.fileno(), self._file_bytes)
        return self._digest.hexdigest()

    def _read(self, descriptor: int, end: int) -> None:
        self._block = self._block or memoryview(bytearray(_HASHED_AT_ONCE))
        while (left := end - self._hashed_bytes) > 0:
            count = os.preadv(descriptor, [self._block[: min(_HASHED_AT_ONCE, left)]], self._hashed_bytes)
            if not count:
                break
            self._digest.update(self._block[:count])
            self._hashed_bytes += count


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
                yield Database(connection, path, file, PassingHash(path) if file == path else None)
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
    pending = [
        c
        for c in (path.with_name(path.name + s) for s in _COMPANIONS)
        if c.is_file() and c.stat().st_size > 0
    ]
    return _settled_copy(path, pending, folder(), budget) if pending else path


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


# Tables and views by name, with their columns.


def quoted(name: str) -> str:
    """Quote an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@frozen
class Table:
    """A table or view with its column names. ``guid`` restricts the rows to one profiled process."""

    name: str
    columns: frozenset[str]
    guid: str | None = None

    def where(self, condition: str = "") -> tuple[str, tuple[str, ...]]:
        """The WHERE clause (empty or with a leading space) and its parameters."""
        conditions = [condition] if condition else []
        if self.guid is not None:
            conditions.append("guid = ?")
        clause = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return clause, (self.guid,) if self.guid is not None else ()

    def rows(
        self, connection: sqlite3.Connection, columns: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of the named columns; a column that the table lacks gives None."""
        wanted = ", ".join(quoted(c) if c in self.columns else "NULL" for c in columns)
        clause, parameters = self.where(condition)
        # Identifiers are quoted and come from the database's own catalogue.
        return connection.execute(f"SELECT {wanted} FROM {quoted(self.name)}{clause}", parameters)  # noqa: S608


class Tables:
    """The catalogue of a database: which tables and views exist and which columns they have."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute(
            "SELECT name, type = 'table' FROM sqlite_master WHERE type IN ('table', 'view')"
        ).fetchall()
        self._kinds = {str(name): bool(is_table) for name, is_table in rows}

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def names(self) -> list[str]:
        return sorted(self._kinds)

    def is_table(self, name: str) -> bool:
        return self._kinds.get(name, False)

    def get(self, name: str) -> Table | None:
        """The table or view called ``name``, or None."""
        if name not in self._kinds:
            return None
        info = self._connection.execute(f"PRAGMA table_info({quoted(name)})")
        return Table(name, frozenset(str(row[1]) for row in info))


# The first 100 bytes of an SQLite file: is it one, is it whole, and does it wait for a write-ahead log.
#
# Layout: https://www.sqlite.org/fileformat2.html, section 1.3.

SQLITE_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_WAL_VERSION = 2
_SMALLEST_PAGE = 512


@frozen
class SqliteHeader:
    """What the header says; ``page_count`` is None when the header does not vouch for it."""

    page_bytes: int
    reserved_bytes: int
    page_count: int | None
    write_ahead: bool


def read_header(path: Path) -> SqliteHeader | None:
    """The header, or None when the file is not SQLite (or too short to tell)."""
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    if len(head) < _HEADER_BYTES or not head.startswith(SQLITE_MAGIC):
        return None
    (page_bytes,) = struct.unpack_from(">H", head, 16)
    page_bytes = 0x10000 if page_bytes == 1 else page_bytes
    if page_bytes < _SMALLEST_PAGE or page_bytes & (page_bytes - 1):
        return None
    change, pages = struct.unpack_from(">II", head, 24)
    (valid_for,) = struct.unpack_from(">I", head, 92)
    return SqliteHeader(
        page_bytes=page_bytes,
        reserved_bytes=head[20],
        page_count=pages if pages and change == valid_for else None,
        write_ahead=head[18] == _WAL_VERSION or head[19] == _WAL_VERSION,
    )


def header_problem(path: Path) -> str | None:
    """Why the file can't be a whole SQLite database, or None. Reads 100 bytes."""
    size = path.stat().st_size
    if size == 0:
        return "the file is empty (0 bytes)"
    header = read_header(path)
    if header is None:
        return "the file is not an SQLite database"
    has_log = path.with_name(path.name + "-wal").exists()
    if header.page_count is not None and not has_log and size < header.page_count * header.page_bytes:
        return (
            f"the SQLite database is truncated: its header promises "
            f"{header.page_count * header.page_bytes} bytes, the file has {size}"
        )
    return None


# Which tables and views of a database show stored values and compute nothing.
#
# Views of recordings are ``SELECT * FROM one_table``, joined by ``UNION ALL`` in merged files. Any other view
# may hang, or make gigabytes out of a few bytes, inside one step that can't be interrupted. So may generated
# columns and virtual tables.

_TOKEN = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|\w+|\S')
_WORDS = {"SELECT": "s", "FROM": "f", "UNION": "u", "ALL": "l", "AS": "a"}
_LETTERS = _WORDS | {c: c for c in ",.*;"}
#: SELECT columns FROM one table, and the same again behind UNION ALL; ``n`` stands for a name.
_SELECT = r"s(?:\*|n(?:\.[n*])?(?:a?n)?)(?:,n(?:\.[n*])?(?:a?n)?)*fn(?:a?n)?"
_PLAIN_SELECT = re.compile(f"{_SELECT}(?:ul?{_SELECT})*;?")
#: What every generated column is declared with.
_MAYBE_GENERATED = re.compile(r"\bAS\b", re.IGNORECASE)
_FIRST_ROOT = 2
#: What is known of longer texts is not kept: a recording may hold megabytes of them.
_LONGEST_KEPT = 8192


@frozen
class PlainSchema:
    """Tables that are stored, views that show columns of them, and (table, column) of what is computed."""

    tables: frozenset[str]
    views: frozenset[str]
    computed: frozenset[tuple[str, str]]

    def __contains__(self, name: object) -> bool:
        return name in self.tables or name in self.views


def plain_schema(connection: sqlite3.Connection) -> PlainSchema:
    """Look at the text of the schema; no view is opened."""
    rows = connection.execute(
        "SELECT name, type = 'table', rootpage, sql FROM sqlite_master WHERE type IN ('table', 'view')"
    ).fetchall()
    tables = frozenset(
        name for name, is_table, root, _ in rows if is_table and isinstance(root, int) and root >= _FIRST_ROOT
    )
    computed = frozenset(
        pair
        for name, _, _, sql in rows
        if name in tables and _MAYBE_GENERATED.search(str(sql))
        for pair in _generated(connection, name)
    )
    known = {name.casefold() for name in tables}
    views = frozenset(
        name for name, is_table, _, sql in rows if not is_table and _is_plain_view(str(sql), known)
    )
    return PlainSchema(tables, views, computed)


def _generated(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    return [(table, column) for _, column, _, _, _, _, hidden in rows if hidden]


def _is_plain_view(sql: str, tables: set[str]) -> bool:
    """Whether a view shows columns of ``tables`` and nothing else. Views of views may grow without bounds."""
    # The recordings of a job have the same views, and reading these took longer than all else of a claim.
    shown = _shown_tables(sql) if len(sql) <= _LONGEST_KEPT else _shown_tables.__wrapped__(sql)
    return shown is not None and tables.issuperset(shown)


@lru_cache(maxsize=128)
def _shown_tables(sql: str) -> tuple[str, ...] | None:
    """The tables whose columns a view shows; None for one that does more."""
    tokens: list[str] = _TOKEN.findall(sql)
    upper = [token.upper() for token in tokens]
    if "AS" not in upper:
        return None
    start = upper.index("AS") + 1
    body = "".join(
        _LETTERS.get(word) or ("n" if word[0] in '"`[' or word.isidentifier() else "?")
        for word in upper[start:]
    )
    if not _PLAIN_SELECT.fullmatch(body):
        return None
    return tuple(_name(tokens[start + at + 1]) for at, letter in enumerate(body) if letter == "f")


def _name(token: str) -> str:
    """The name that a token stands for, as SQLite compares names."""
    quote = token[0]
    if quote == "[":
        return token[1:-1].casefold()
    return token[1:-1].replace(2 * quote, quote).casefold() if quote in '"`' else token.casefold()
