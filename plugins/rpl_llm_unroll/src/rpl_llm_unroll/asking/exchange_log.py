"""The file of exchanges: appended and synced before a reply is used, read back whole."""

from __future__ import annotations

import os
from pathlib import Path

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular
from rpl_core.values import frozen
from rpl_llm_unroll.asking.exchange import Exchange, parse_exchange

FILE_NAME = "exchanges.jsonl"
#: A session has a few dozen exchanges of a few hundred kilobytes (chosen).
_MAX_FILE_BYTES = 256 << 20


@frozen
class ExchangeLog:
    """``path`` is made with its first exchange; ``None`` keeps no record."""

    path: Path | None

    def append(self, exchange: Exchange) -> None:
        """Write one line and wait until it is on the disk. Raises ``OSError`` with the file's name."""
        if self.path is None:
            return
        line = exchange.line().encode("ascii")
        with self.path.open("ab") as file:
            if _ends_torn(self.path):
                line = b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> tuple[Exchange, ...]:
        """What an earlier part of this session recorded. A torn last line is what a crash leaves: ignored."""
        if self.path is None or not self.path.is_file():
            return ()
        return _read(self.path, torn_line_is_error=False)


def read_exchanges(path: Path) -> tuple[Exchange, ...]:
    """The exchanges of a file that the user named.

    Raises ``MissingError`` without it and ``BadDataError`` for damage.
    """
    if not path.is_file():
        raise MissingError(f"no recorded exchanges at {path}", next_step="check --replay-llm")
    return _read(path, torn_line_is_error=True)


def _read(path: Path, *, torn_line_is_error: bool) -> tuple[Exchange, ...]:
    try:
        lines = read_regular(path, _MAX_FILE_BYTES).decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise BadDataError(f"{path} holds no recorded exchanges: it is not ASCII") from None
    last = len(lines) - 1  # behind the last line feed: empty, or torn
    exchanges = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            exchanges.append(parse_exchange(line, f"{path}, line {number + 1}"))
        except BadDataError:
            # A torn line stays in the file when the session went on behind it.
            if torn_line_is_error and number == last:
                raise
            if number != last and not _is_torn(line):
                raise
    return tuple(exchanges)


def _is_torn(line: str) -> bool:
    return not line.endswith("}")


def _ends_torn(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return False
        file.seek(size - 1)
        return file.read(1) != b"\n"
