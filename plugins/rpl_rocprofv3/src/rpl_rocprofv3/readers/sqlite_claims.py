"""Groups database files into input sets: which are recordings, which are refused, which belong together.

Files are opened only to read their catalogue. Grouping files of one execution is in ``run_groups``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet
from rpl_rocprofv3.readers.gzip_limits import unpacked_head
from rpl_rocprofv3.readers.sqlite_file import open_database
from rpl_rocprofv3.readers.sqlite_header import SQLITE_MAGIC
from rpl_rocprofv3.readers.sqlite_identity import DatabaseKind, identify

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["claim_databases"]

# Names under which profilers write databases; other files count only if they begin like one.
_SUFFIXES = (".db", ".rpd", ".sqlite", ".sqlite3")


def claim_databases(
    reader: str, files: Sequence[Path], kinds: frozenset[DatabaseKind]
) -> tuple[InputSet, ...]:
    """The sets of ``files`` whose database is one of ``kinds``. Damaged files count as foreign ones."""
    found = []
    for path in sorted(files):
        if looks_like_database(path):
            claimed = _claim(reader, path, kinds)
            if claimed is not None:
                found.append(claimed)
    return tuple(found)


def looks_like_database(path: Path) -> bool:
    """Whether the name or the first bytes speak for SQLite. Never raises."""
    try:
        if not path.is_file() or path.name.endswith(("-wal", "-shm", "-journal")):
            return False
        named = path.name.removesuffix(".gz").endswith(_SUFFIXES)
        if path.suffix == ".gz":
            return named or unpacked_head(path, len(SQLITE_MAGIC)) == SQLITE_MAGIC
        with path.open("rb") as file:
            return named or file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False


def _claim(reader: str, path: Path, kinds: frozenset[DatabaseKind]) -> InputSet | None:
    try:
        with open_database(path) as database:
            identity = identify(database.connection)
    except BadDataError as error:
        if DatabaseKind.FOREIGN not in kinds:
            return None
        return InputSet(reader, "damaged or foreign database", (path,), error.fact, error.next_step)
    if identity.kind not in kinds:
        return None
    return InputSet(reader, identity.format, (path,), identity.refusal, identity.next_step)
