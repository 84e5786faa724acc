"""Groups database files into input sets: which are recordings, which are refused, which belong together.

Files are opened only to read their catalogue and the table of processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet
from rpl_rocprofv3.database import open_database
from rpl_rocprofv3.readers.gzip_limits import unpacked_head
from rpl_rocprofv3.readers.run_groups import execution_groups, repeated_files
from rpl_rocprofv3.readers.sqlite.header import SQLITE_MAGIC
from rpl_rocprofv3.readers.sqlite.identity import DatabaseKind, identify

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.run_groups import RecordedFile

__all__ = ["claim_databases", "looks_like_database"]

# Names under which profilers write databases; other files count only if they begin like one.
_SUFFIXES = (".db", ".rpd", ".sqlite", ".sqlite3")


def claim_databases(
    reader: str,
    files: Sequence[Path],
    kinds: frozenset[DatabaseKind],
    describe: Callable[[Database], RecordedFile],
) -> tuple[InputSet, ...]:
    """The sets of ``files`` whose database is one of ``kinds``. Damaged files count as foreign ones.

    ``describe`` tells the lifetime of a readable file, by which files of one execution are joined.
    """
    refused: list[InputSet] = []
    readable: dict[Path, str] = {}
    recorded: list[RecordedFile] = []
    for path in sorted(path for path in files if looks_like_database(path)):
        found = _claim(reader, path, kinds, describe)
        if isinstance(found, InputSet):
            refused.append(found)
        elif found is not None:
            readable[path], file = found
            recorded.append(file)
    repeated = repeated_files(recorded)
    refused += [_repetition(reader, readable[path], path, repeated[path]) for path in repeated]
    groups = execution_groups([file for file in recorded if file.path not in repeated])
    sets = [
        InputSet(
            reader,
            ", ".join(dict.fromkeys(readable[file.path] for file in group)),
            tuple(file.path for file in group),
        )
        for group in groups
    ]
    return tuple(sorted([*sets, *refused], key=lambda claimed: claimed.paths))


def _repetition(reader: str, form: str, path: Path, original: Path) -> InputSet:
    return InputSet(
        reader,
        form,
        (path,),
        f"it repeats the recording in {original.name} (same guid)",
        "give rpl one of the two",
    )


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


def _claim(
    reader: str,
    path: Path,
    kinds: frozenset[DatabaseKind],
    describe: Callable[[Database], RecordedFile],
) -> InputSet | tuple[str, RecordedFile] | None:
    """A refusal, the format with the description of a readable file, or None for other readers' files."""
    try:
        with open_database(path) as database:
            identity = identify(database.connection)
            if identity.kind not in kinds:
                return None
            if identity.refusal:
                return InputSet(reader, identity.format, (path,), identity.refusal, identity.next_step)
            return identity.format, describe(database)
    except BadDataError as error:
        if DatabaseKind.FOREIGN not in kinds:
            return None
        return InputSet(reader, "damaged or foreign database", (path,), error.fact, error.next_step)
