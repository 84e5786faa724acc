"""A signature of a whole ledger with a key that its writer's machine may have and others may not.

The chain of hashes shows that no line was changed on its own. Whoever may write the file can still make up
all of them, or leave out the last ones. The signature is an HMAC-SHA256 (RFC 2104, by Python's ``hmac``) over
the last line's hash, and so over every line. Who verifies needs the same key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Final

from pydantic import Field, ValidationError

from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files.atomic import write_atomic
from rpl_core.files.bounded import read_regular

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_key", "sign", "signature_problem"]

SIGNATURE: Final = "ledger.sig"
_ALGORITHM: Final = "hmac-sha256"
#: Four short values.
_MOST_BYTES: Final = 1 << 16
#: RFC 2104: keys shorter than the hash weaken it. Longer than this is no key.
LEAST_KEY_BYTES, MOST_KEY_BYTES = 32, 1 << 16


class _Signature(Part):
    """``ledger.sig``."""

    algorithm: str
    lines: int = Field(ge=1)
    last_sha256: str
    signature: str


def read_key(path: Path) -> bytes:
    """The bytes of a key's file. Raises ``MissingError`` or ``UsageError``."""
    try:
        with path.open("rb") as file:
            key = file.read(MOST_KEY_BYTES + 1)
    except OSError as error:
        raise MissingError(f"cannot read the key {path}: {error.strerror}") from error
    if not LEAST_KEY_BYTES <= len(key) <= MOST_KEY_BYTES:
        raise UsageError(
            f"{path} holds {min(len(key), MOST_KEY_BYTES)} bytes or more, a key has {LEAST_KEY_BYTES} to "
            f"{MOST_KEY_BYTES}",
            next_step=f"make one: head -c {LEAST_KEY_BYTES} /dev/urandom > KEY",
        )
    return key


def sign(ledger: Path, key: bytes, lines: int, last_sha256: str) -> None:
    """Write the signature beside the ledger."""
    made = _Signature(
        algorithm=_ALGORITHM, lines=lines, last_sha256=last_sha256, signature=_over(key, lines, last_sha256)
    )
    write_atomic(ledger.with_name(SIGNATURE), json.dumps(made.model_dump(), indent=1) + "\n")


def signature_problem(ledger: Path, key: bytes, lines: int, last_sha256: str) -> str | None:
    """Why the signature beside a ledger is not that of its lines with this key."""
    path = ledger.with_name(SIGNATURE)
    try:
        signature = _Signature.model_validate_json(read_regular(path, _MOST_BYTES))
    except MissingError:
        return f"it is not signed: there is no {SIGNATURE}"
    except (BadDataError, ValidationError) as error:
        return f"{SIGNATURE} can't be read: {type(error).__name__}"
    if signature.algorithm != _ALGORITHM:
        return f"{SIGNATURE} was made by {signature.algorithm[:40]!r}, not by {_ALGORITHM}"
    if not hmac.compare_digest(signature.signature, _over(key, signature.lines, signature.last_sha256)):
        return "its signature was not made with this key"
    if (signature.lines, signature.last_sha256) != (lines, last_sha256):
        return f"the signed ledger has {signature.lines} lines and another end than this one with {lines}"
    return None


def _over(key: bytes, lines: int, last_sha256: str) -> str:
    return hmac.new(key, f"rpl-ledger {lines} {last_sha256}".encode(), hashlib.sha256).hexdigest()
