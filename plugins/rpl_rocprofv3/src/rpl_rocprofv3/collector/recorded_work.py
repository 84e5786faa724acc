"""Whether a recording holds anything at all. What it holds is the readers' business.

All answers are True, False or ``None`` for "can't tell": a broken file is refused later, by its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rpl_core.errors import BadDataError

_DISPATCH_TABLE = "rocpd_kernel_dispatch"
_COUNTER_TABLE = "rocpd_pmc_event"
_KERNEL_CSV = "kernel_trace.csv"
_COUNTER_CSV = "counter_collection.csv"
_LINE_LIMIT_BYTES = 1 << 20


def holds_dispatches(files: Sequence[Path]) -> bool | None:
    return _any_of(files, lambda path: _has_rows(path, _DISPATCH_TABLE, (_KERNEL_CSV, _COUNTER_CSV)))


def holds_counters(files: Sequence[Path]) -> bool | None:
    return _any_of(files, lambda path: _has_rows(path, _COUNTER_TABLE, (_COUNTER_CSV,)))


def _any_of(files: Sequence[Path], has: Callable[[Path], bool | None]) -> bool | None:
    answers = [has(path) for path in files]
    if any(answers):
        return True
    return None if None in answers else False


def _has_rows(path: Path, table: str, csv_names: tuple[str, ...]) -> bool | None:
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
