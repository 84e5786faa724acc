"""Lines of a ledger: events with their contracts, chained by hashes, read without trusting anything."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError, MissingError
from rpl_core.values import frozen
from rpl_optimize.contracts import ledger as data


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
