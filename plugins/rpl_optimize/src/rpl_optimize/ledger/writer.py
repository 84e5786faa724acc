"""Append to a ledger: one write and one sync per line, and no half line is ever left by rpl itself."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.files import storage_error
from rpl_core.text import encodable
from rpl_core.values import frozen
from rpl_optimize.ledger.lines import (
    CONTRACTS,
    FIRST_PREVIOUS,
    MAX_LINE_BYTES,
    TIME_FORMAT,
    LedgerEntry,
    LedgerEvent,
    encode,
    make_entry,
    read_ledger,
)

if TYPE_CHECKING:
    from typing_extensions import Self

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


@frozen
class _State:
    """How the file stands. One value, so that an interrupt never finds half of a change."""

    sequence: int = 0
    last_sha256: str = FIRST_PREVIOUS
    size: int = 0

    def after(self, entry: LedgerEntry, line_bytes: int) -> _State:
        return _State(entry.sequence, entry.sha256, self.size + line_bytes)


class Ledger:
    """A ledger in progress. Only one process holds it; the lock goes with the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Use ``create`` or ``open_for_append``."""
        self.path = path
        self._descriptor = descriptor
        self._state = _State()
        self._pending: _State | None = None

    @classmethod
    def create(cls, path: Path) -> Self:
        """An empty ledger. Raises ``UsageError`` if ``path`` exists, and as ``storage_error`` says."""
        with _storage_errors(path):
            ledger = cls(path, _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        with ledger._closed_on_error():
            _lock(path, ledger._descriptor)
            _sync_directory(path.parent)
        return ledger

    @classmethod
    def open_for_append(cls, path: Path) -> Self:
        """Go on with a ledger. A torn last line is cut off, and an event ``recovered`` says so.

        Raises ``BadDataError`` for anything else that is wrong, ``MissingError`` without a file, and
        ``UsageError`` while another process writes it.
        """
        try:
            descriptor = _open(path, os.O_RDWR)
        except FileNotFoundError:
            raise MissingError(f"there is no ledger {path}", next_step="name a session's directory") from None
        except OSError as error:
            raise storage_error(path, error) from error
        ledger = cls(path, descriptor)
        with ledger._closed_on_error():
            _lock(path, descriptor)
            ledger._continue()
        return ledger

    @property
    def entries(self) -> int:
        """Complete lines."""
        return self._state.sequence

    @property
    def last_sha256(self) -> str:
        """Hash of the last line: whoever keeps it can tell later that no line was taken away."""
        return self._state.last_sha256

    def append(self, event: LedgerEvent, data: Part | Mapping[str, Any]) -> LedgerEntry:
        """Write one line; it is on the disk when this returns.

        ``data`` must fit the contract of the event. On a full disk nothing of the line stays, and the error
        of ``storage_error`` is raised; the ledger can be used again once there is space.
        """
        self._settle()
        entry = make_entry(
            self._state.sequence + 1, _now(), event, _plain(event, data), self._state.last_sha256
        )
        line = encode(entry)
        if len(line) > MAX_LINE_BYTES:
            raise RplError(f"an event {event.value} of {len(line)} bytes is too long for a ledger")
        self._pending = self._state.after(entry, len(line))
        try:
            self._write(line)
        except OSError as error:
            self._take_back()
            raise storage_error(self.path, error) from error
        self._settle()
        return entry

    def close(self) -> None:
        """Free the file and its lock; twice does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        if os.write(self._descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._descriptor)

    def _take_back(self) -> None:
        """Cut off what a failed write left. If even that fails, the next opening recovers."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, self._state.size)
            self._pending = None

    def _settle(self) -> None:
        """Take over what the last ``append`` wrote; an interrupted one left its line, a part or nothing.

        A line that is whole counts, because whoever reads the file sees it too.
        """
        size = os.fstat(self._descriptor).st_size
        if self._pending is not None:
            if size == self._pending.size:
                self._state = self._pending
            elif self._state.size <= size < self._pending.size:
                os.ftruncate(self._descriptor, self._state.size)
                size = self._state.size
            self._pending = None
        if size != self._state.size:
            raise BadDataError(
                f"{self.path} was changed by something else while rpl wrote it",
                next_step="trust no verdict of this session; start a new one",
            )

    def _continue(self) -> None:
        # All that is complete must be right before anything is cut.
        for entry in read_ledger(self.path, accept_torn=True):
            self._state = self._state.after(entry, len(encode(entry)))
        end, size = self._state.size, os.fstat(self._descriptor).st_size
        if end == size:
            return
        dropped = os.pread(self._descriptor, size - end, end)
        os.ftruncate(self._descriptor, end)
        digest = hashlib.sha256(dropped).hexdigest()
        self.append(LedgerEvent.RECOVERED, {"dropped_bytes": len(dropped), "dropped_sha256": digest})

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            with _storage_errors(self.path):
                yield
        except BaseException:
            self.close()
            raise


@contextlib.contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error


def _open(path: Path, flags: int) -> int:
    # No link is followed: the ledger lies in a directory that other programs may write.
    return os.open(path, flags | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


def _lock(path: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"another rpl is writing {path}", next_step="wait until it has finished, or interrupt it"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def _sync_directory(directory: Path) -> None:
    """So that the new file's name survives a crash."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _now() -> str:
    return datetime.now(timezone.utc).strftime(TIME_FORMAT)


def _plain(event: LedgerEvent, data: Part | Mapping[str, Any]) -> dict[str, Any]:
    """``data`` as JSON values, by the event's contract."""
    contract = CONTRACTS[event]
    try:
        part = data if isinstance(data, contract) else contract.model_validate(_values(data))
        return {name: _printable(value) for name, value in part.model_dump(mode="json").items()}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the data"
        raise RplError(f"the event {event.value} does not fit the ledger: {place}: {first['msg']}") from None


def _printable(value: Any) -> Any:
    """Bytes of a command line that are no UTF-8 written out, as everywhere in rpl's files."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(name): _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value


def _values(data: Part | Mapping[str, Any]) -> Mapping[str, Any]:
    return data.model_dump() if isinstance(data, Part) else data
