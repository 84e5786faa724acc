"""Read a kernel source file as bytes, with a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_optimize.interfaces.transformation import KernelSource

if TYPE_CHECKING:
    from pathlib import Path

#: No hand-written kernel file comes near this; a larger one is not source code.
MAX_SOURCE_BYTES = 16 << 20


def read_source(path: Path, kernel: str | None) -> KernelSource:
    """The file as a ``KernelSource``; ``MissingError`` or ``BadDataError`` when it is absent or too large."""
    if not path.is_file():
        raise MissingError(f"no source file at {path}", next_step="check the path")
    with path.open("rb") as file:
        text = file.read(MAX_SOURCE_BYTES + 1)
    if len(text) > MAX_SOURCE_BYTES:
        raise BadDataError(f"{path} is larger than {MAX_SOURCE_BYTES >> 20} MiB, so it is not read as source")
    return KernelSource(str(path), text, kernel)
