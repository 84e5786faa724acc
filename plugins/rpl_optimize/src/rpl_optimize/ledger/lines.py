"""Lines of a ledger: events with their contracts, chained by hashes, read without trusting anything."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs
from pydantic import ValidationError

from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.files import storage_error
from rpl_core.text import encodable
from rpl_core.values import frozen
from rpl_optimize import contracts as data

if TYPE_CHECKING:
    from typing_extensions import Self


class LedgerEvent(str, Enum):
    """In the order in which a session meets them first."""

    SESSION_STARTED = "session_started"
    RESUMED = "resumed"
    BASELINE_PROFILED = "baseline_profiled"
    TARGET_CHOSEN = "target_chosen"
    PROPOSED = "proposed"
    SOURCE_GUARDED = "source_guarded"
    BUILT = "built"
    BINARY_GUARDED = "binary_guarded"
    EQUIVALENCE_CHECKED = "equivalence_checked"
    CONTINUED = "continued"
    PLANNED = "planned"
    TIMED_ALONE = "timed_alone"
    MEASURED = "measured"
    REMEASURED = "remeasured"
    PLACED = "placed"
    MODELLED = "modelled"
    JUDGED = "judged"
    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"
    WRITTEN = "written"
    FINISHED = "finished"
    RECOVERED = "recovered"
    NOTE = "note"


#: What ``data`` of each event holds.
CONTRACTS: Mapping[LedgerEvent, type[Part]] = {
    LedgerEvent.SESSION_STARTED: data.SessionStartedData,
    LedgerEvent.RESUMED: data.ResumedData,
    LedgerEvent.BASELINE_PROFILED: data.BaselineProfiledData,
    LedgerEvent.TARGET_CHOSEN: data.TargetChosenData,
    LedgerEvent.PROPOSED: data.ProposedData,
    LedgerEvent.SOURCE_GUARDED: data.GuardedData,
    LedgerEvent.BUILT: data.BuiltData,
    LedgerEvent.BINARY_GUARDED: data.GuardedData,
    LedgerEvent.EQUIVALENCE_CHECKED: data.CheckedData,
    LedgerEvent.CONTINUED: data.ContinuedData,
    LedgerEvent.PLANNED: data.PlannedData,
    LedgerEvent.TIMED_ALONE: data.MeasuredData,
    LedgerEvent.MEASURED: data.MeasuredData,
    LedgerEvent.REMEASURED: data.MeasuredData,
    LedgerEvent.PLACED: data.PlacementData,
    LedgerEvent.MODELLED: data.ModelledData,
    LedgerEvent.JUDGED: data.JudgedData,
    LedgerEvent.ACCEPTED: data.AcceptedData,
    LedgerEvent.ROLLED_BACK: data.RolledBackData,
    LedgerEvent.WRITTEN: data.WrittenData,
    LedgerEvent.FINISHED: data.FinishedData,
    LedgerEvent.RECOVERED: data.RecoveredData,
    LedgerEvent.NOTE: data.NoteData,
}


# One line of a ledger: canonical JSON with the hash of the line before it and its own.
#
# Canonical: keys sorted, no white space, ASCII only, no NaN or infinity. A line is its own canonical form
# plus a line feed, so that every changed byte is noticed, white space and repeated keys included.

#: ``previous_sha256`` of the first line.
FIRST_PREVIOUS = "0" * 64
#: Longest line in bytes that is written or read (chosen: a judgement of 30 pairs takes a few thousand).
MAX_LINE_BYTES = 4 << 20
#: Of ``time_utc``.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
_KEYS = {"sequence", "time_utc", "event", "data", "previous_sha256", "sha256"}
_MOST_TIME_CHARACTERS = 64


@frozen
class LedgerEntry:
    """A line that was checked against its own hash. ``sequence`` counts from 1, like lines."""

    sequence: int
    time_utc: str
    event: LedgerEvent
    data: Mapping[str, Any] = attrs.field(repr=False)
    previous_sha256: str
    sha256: str


def make_entry(
    sequence: int, time_utc: str, event: LedgerEvent, data: Mapping[str, Any], previous_sha256: str
) -> LedgerEntry:
    """An entry with its hash. Raises ``ValueError`` or ``TypeError`` for data that JSON can't hold."""
    body = _body(sequence, time_utc, event, data, previous_sha256)
    digest = hashlib.sha256(_canonical(body)).hexdigest()
    return LedgerEntry(sequence, time_utc, event, data, previous_sha256, digest)


def encode(entry: LedgerEntry) -> bytes:
    """The line with its line feed."""
    body = _body(entry.sequence, entry.time_utc, entry.event, entry.data, entry.previous_sha256)
    return _canonical({**body, "sha256": entry.sha256}) + b"\n"


def decode(line: bytes) -> LedgerEntry:
    """The entry of a line without its line feed. Raises ``BadDataError`` unless every byte is as written."""
    value = _parsed(line)
    if not isinstance(value, dict) or set(value) != _KEYS:
        raise BadDataError("it is no line of a ledger")
    try:
        event = LedgerEvent(value["event"])
    except ValueError:
        raise BadDataError(f"the event {str(value['event'])[:60]!r} is unknown") from None
    entry = LedgerEntry(
        sequence=_checked(value["sequence"], int, "sequence"),
        time_utc=_checked(value["time_utc"], str, "time_utc"),
        event=event,
        data=_checked(value["data"], dict, "data"),
        previous_sha256=_checked(value["previous_sha256"], str, "previous_sha256"),
        sha256=_checked(value["sha256"], str, "sha256"),
    )
    if len(entry.time_utc) > _MOST_TIME_CHARACTERS:
        raise BadDataError("time_utc is no time")
    _require_own_hash(entry, line)
    return entry


def _require_own_hash(entry: LedgerEntry, line: bytes) -> None:
    try:
        # Half a surrogate pair is text that nobody can print.
        json.dumps(entry.data, ensure_ascii=False).encode()
        again = make_entry(entry.sequence, entry.time_utc, entry.event, entry.data, entry.previous_sha256)
        written = encode(again)
    except (ValueError, RecursionError):  # numbers beyond a double, or nesting beyond the stack
        raise BadDataError("it holds what a ledger never does") from None
    if again.sha256 != entry.sha256:
        raise BadDataError("its hash does not belong to its content")
    if written != line + b"\n":
        raise BadDataError("it is not in canonical form")


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise BadDataError("it is no JSON") from None


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _checked(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:
        raise BadDataError(f"{name} is no {kind.__name__}")
    return value


def _body(
    sequence: int, time_utc: str, event: LedgerEvent, data: Mapping[str, Any], previous_sha256: str
) -> dict[str, Any]:
    return {
        "sequence": sequence,
        "time_utc": time_utc,
        "event": event.value,
        "data": data,
        "previous_sha256": previous_sha256,
    }


def _canonical(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


# Read a ledger line by line; it may come from elsewhere, so nothing in it is trusted before its hash.

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


# Append to a ledger: one write and one sync per line, and no half line is ever left by rpl itself.

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
            self._state.sequence + 1,
            datetime.now(timezone.utc).strftime(TIME_FORMAT),
            event,
            _checked_data(event, data),
            self._state.last_sha256,
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


def _checked_data(event: LedgerEvent, data: Part | Mapping[str, Any]) -> dict[str, Any]:
    """``data`` as JSON values, by the event's contract."""
    contract = CONTRACTS[event]
    try:
        part = (
            data
            if isinstance(data, contract)
            else contract.model_validate(data.model_dump() if isinstance(data, Part) else data)
        )
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
