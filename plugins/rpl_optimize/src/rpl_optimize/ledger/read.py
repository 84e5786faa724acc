"""Read a ledger line by line; it may come from elsewhere, so nothing in it is trusted before its hash."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_optimize.ledger.line import FIRST_PREVIOUS, MAX_LINE_BYTES, decode

if TYPE_CHECKING:
    from typing import BinaryIO

    from rpl_optimize.ledger.line import LedgerEntry

#: Largest file that is read (chosen: thousands of candidates).
MAX_LEDGER_BYTES = 256 << 20


class BrokenLedgerError(BadDataError):
    """A line that does not continue the chain. ``line`` counts from 1."""

    def __init__(self, path: Path, line: int, problem: str, *, torn: bool = False) -> None:
        super().__init__(
            f"{path}, line {line}: {problem}",
            cause="the last write was cut off: the session was killed, or the disk was full"
            if torn
            else "the file was changed after it was written, or is damaged",
            next_step="`rpl optimize --resume` cuts the torn line off and says so in the ledger"
            if torn
            else "trust no verdict of this session from that line on",
        )
        self.line = line
        self.torn = torn


def read_ledger(
    path: Path, limit: int = MAX_LEDGER_BYTES, *, accept_torn: bool = False
) -> Iterator[LedgerEntry]:
    """The entries in order, each checked against its hash and the one before it. Lazy: one line in memory.

    ``limit`` bounds the file in bytes. Raises ``BrokenLedgerError`` at the first line that is wrong, which a
    last line without its end is too unless ``accept_torn``; ``MissingError`` without a file.
    """
    with _opened(path, limit) as stream:
        yield from _entries(path, stream, accept_torn=accept_torn)


@contextmanager
def _opened(path: Path, limit: int) -> Iterator[BinaryIO]:
    try:
        # Non-blocking: opening a named pipe must not wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise MissingError(
            f"cannot read the ledger {path}: {error.strerror}", next_step="name a ledger or its session"
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadDataError(f"{path} is no file")
        if status.st_size > limit:
            raise BadDataError(f"{path} is larger than {limit >> 20} MiB: no ledger that rpl writes")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)


def _entries(path: Path, stream: BinaryIO, *, accept_torn: bool) -> Iterator[LedgerEntry]:
    previous, number = FIRST_PREVIOUS, 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if not raw.endswith(b"\n"):
            if len(raw) > MAX_LINE_BYTES:
                raise BrokenLedgerError(path, number, f"longer than {MAX_LINE_BYTES >> 20} MiB")
            if accept_torn:
                return
            raise BrokenLedgerError(path, number, f"torn after {len(raw)} bytes", torn=True)
        entry = _decoded(path, number, raw)
        if entry.sequence != number:
            raise BrokenLedgerError(path, number, f"its sequence is {entry.sequence}")
        if entry.previous_sha256 != previous:
            raise BrokenLedgerError(path, number, "it does not follow the line before it")
        previous = entry.sha256
        yield entry


def _decoded(path: Path, number: int, raw: bytes) -> LedgerEntry:
    try:
        return decode(raw[:-1])
    except BadDataError as error:
        raise BrokenLedgerError(path, number, error.fact) from None
