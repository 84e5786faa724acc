"""The first 100 bytes of an SQLite file: is it one, is it whole, and does it wait for a write-ahead log.

Layout: https://www.sqlite.org/fileformat2.html, section 1.3.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SQLITE_MAGIC", "SqliteHeader", "header_problem", "read_header"]

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
