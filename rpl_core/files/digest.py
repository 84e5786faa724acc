"""SHA-256 of files of any size."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """The hash in hexadecimal; the file is read in blocks."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(_BLOCK_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()
