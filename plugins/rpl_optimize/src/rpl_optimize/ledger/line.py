"""One line of a ledger: canonical JSON with the hash of the line before it and its own.

Canonical: keys sorted, no white space, ASCII only, no NaN or infinity. A line is its own canonical form
plus a line feed, so that every changed byte is noticed, white space and repeated keys included.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import attrs

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_optimize.ledger.events import LedgerEvent

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
