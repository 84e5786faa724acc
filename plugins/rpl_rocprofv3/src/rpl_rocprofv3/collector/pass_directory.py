"""The directory of one pass: empty before it, searched after it for recordings that hold anything.

What they hold is the readers' business: a broken file is refused later, by its reader.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from rpl_core.errors import BadDataError, UsageError
from rpl_core.process.storage import make_directory, storage_error
from rpl_rocprofv3.collector.tool_version import OutputFormat

_SUFFIXES = {OutputFormat.ROCPD: (".db",), OutputFormat.CSV: (".csv",), OutputFormat.JSON: ("_results.json",)}
#: What rocprofv3 replaces in the names of directories: %key%, %h, $ENV{X}, %q{X}, {key}
#: (docs/reference/formats.md, 4.3).
_REPLACED = re.compile(r"%\w+%|%[hpjrs]|%q\{|\$ENV\{|%env\{|\{\w+\}")
_DISPATCH_TABLE = "rocpd_kernel_dispatch"
_COUNTER_TABLE = "rocpd_pmc_event"
_KERNEL_CSV = "kernel_trace.csv"
_COUNTER_CSV = "counter_collection.csv"
_LINE_LIMIT_BYTES = 1 << 20


def prepare_directory(directory: Path) -> None:
    """Make ``directory``, or raise ``UsageError`` if it can't hold exactly one recording.

    A file that is there already would be taken for the result of this pass.
    """
    if match := _REPLACED.search(str(directory)):
        raise UsageError(
            f"the path of the run directory holds {match[0]!r}, which rocprofv3 replaces by something else",
            next_step="choose another one with -o DIR",
        )
    make_directory(directory)
    try:
        occupied = any(directory.iterdir())
    except OSError as error:
        raise storage_error(directory, error) from error
    if occupied:
        raise UsageError(
            f"{directory} is not empty, and a recording of this pass could not be told from what is there",
            next_step="choose a fresh directory with -o DIR",
        )


def recorded_files(directory: Path, output: OutputFormat) -> tuple[Path, ...]:
    """Recordings anywhere below ``directory``, sorted. Links are not followed: they may lead out of it."""
    paths: list[Path] = []
    for folder, subfolders, names in os.walk(directory):
        subfolders.sort()
        for name in names:
            path = Path(folder) / name
            if name.endswith(_SUFFIXES[output]) and _is_regular(path):
                paths.append(path)
    return tuple(sorted(paths))


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def holds_dispatches(files: Sequence[Path]) -> bool | None:
    """``None`` for "can't tell"."""
    return _any_of(files, lambda path: _has_rows(path, _DISPATCH_TABLE, (_KERNEL_CSV, _COUNTER_CSV)))


def holds_counters(files: Sequence[Path]) -> bool | None:
    """``None`` for "can't tell"."""
    return _any_of(files, lambda path: _has_rows(path, _COUNTER_TABLE, (_COUNTER_CSV,)))


def _any_of(files: Sequence[Path], has: Callable[[Path], bool | None]) -> bool | None:
    answers = [has(path) for path in files]
    if any(answers):
        return True
    return None if None in answers else False


def _has_rows(path: Path, table: str, csv_names: tuple[str, ...]) -> bool | None:
    if path.suffix == ".json":
        return None  # a large file is not read twice: its reader tells
    if path.suffix == ".csv":
        return path.name.endswith(csv_names) and _has_second_line(path)
    return _has_row(path, table)


def _has_second_line(path: Path) -> bool | None:
    try:
        with path.open("rb") as stream:
            stream.readline(_LINE_LIMIT_BYTES)
            return bool(stream.readline(_LINE_LIMIT_BYTES).strip())
    except OSError:
        return None


def _has_row(path: Path, table: str) -> bool | None:
    from rpl_rocprofv3.database import open_database
    from rpl_rocprofv3.readers.sqlite.tables import Tables

    try:
        with open_database(path) as database:
            found = Tables(database.connection).get(table)
            if found is None:
                return None
            return next(found.rows(database.connection, ("id",)), None) is not None
    except BadDataError:
        return None
