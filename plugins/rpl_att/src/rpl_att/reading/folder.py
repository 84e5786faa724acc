"""A decoded trace folder: which files it holds, and the only way to open one of them.

File names inside trace files are data from elsewhere. A name that is not a plain regular file of this very
folder is refused, so that nothing outside of it is ever opened.
"""

from __future__ import annotations

import gzip
import re
import stat
import zlib
from pathlib import Path
from typing import IO, Any

from rpl_core.errors import BadDataError
from rpl_core.files import bounded
from rpl_core.values import frozen

#: JSON tables are read whole up to this size; the largest public one has 0.38 MB of code rows
#: (docs/reference/thread-trace.md, 5).
MAX_TABLE_BYTES = 32 << 20
#: A compressed file may unpack to this many times its size, and to 64 MiB in any case.
_MAX_EXPANSION = 100
_EXPANSION_FLOOR_BYTES = 64 << 20
_COPY_BYTES = 1 << 20

_FOLDER_NAME = re.compile(r"ui_output_agent_(?P<agent>\d+)_dispatch_(?P<dispatch>\d+)\Z")


@frozen
class TraceFolder:
    """One decoded folder. ``agent_handle`` and ``dispatch_id`` are those in its name, if there."""

    path: Path
    agent_handle: int | None = None
    dispatch_id: int | None = None

    @classmethod
    def at(cls, path: Path) -> TraceFolder:
        match = _FOLDER_NAME.match(path.resolve().name)
        if match is None:
            return cls(path)
        return cls(path, int(match["agent"]), int(match["dispatch"]))

    def find(self, name: str) -> Path | None:
        """The file called ``name`` (or ``name.gz``), or ``None``. Raises ``BadDataError`` for a trick."""
        if name != Path(name).name or name in ("", ".", "..") or "\0" in name or "\\" in name:
            raise BadDataError(
                f"{self.path} names a file outside of itself: {name[:200]!r}",
                cause="the trace is damaged, or was made to mislead",
                next_step="decode the trace again",
            )
        for candidate in (self.path / name, self.path / f"{name}.gz"):
            if _is_regular(candidate):
                return candidate
        return None

    def names(self, pattern: str) -> tuple[str, ...]:
        """Names of regular files (without ``.gz``) that ``pattern`` matches as a whole, sorted."""
        compiled = re.compile(pattern)
        plain = {entry.name.removesuffix(".gz") for entry in self.path.iterdir()}
        return tuple(sorted(n for n in plain if compiled.fullmatch(n) and self.find(n) is not None))

    def table(self, name: str) -> Any:
        """The JSON value in file ``name``, or ``None`` when there is no such file."""
        path = self.find(name)
        if path is None:
            return None
        with open_bounded(path) as stream:
            data = stream.read(MAX_TABLE_BYTES + 1)
        if len(data) > MAX_TABLE_BYTES:
            raise BadDataError(f"{path} is larger than {MAX_TABLE_BYTES >> 20} MiB and is not read")
        return parse_json(data, path)


def parse_json(data: bytes, path: Path) -> Any:
    """``data`` as JSON; every failure names the file."""
    try:
        return bounded.parse_json(data, path)
    except BadDataError as error:
        error.cause = "the decoder was stopped, or the copy is incomplete"
        error.next_step = "decode or copy the trace again"
        raise


def open_bounded(path: Path) -> IO[bytes]:
    """A binary stream; a ``.gz`` file is unpacked on the way, as far as real traces go."""
    if path.suffix != ".gz":
        return path.open("rb")
    limit = max(path.stat().st_size * _MAX_EXPANSION, _EXPANSION_FLOOR_BYTES)
    if _unpacked_bytes(path, limit) > limit:
        raise BadDataError(f"{path} unpacks to more than {limit >> 20} MiB: no trace file does")
    return gzip.open(path, "rb")  # type: ignore[return-value]  # a binary stream in all but its class


def _unpacked_bytes(path: Path, limit: int) -> int:
    """Size of the unpacked file, counted until ``limit`` is passed. Raises ``BadDataError`` if damaged."""
    total = 0
    try:
        with gzip.open(path, "rb") as stream:
            while total <= limit and (block := stream.read(_COPY_BYTES)):
                total += len(block)
    except (OSError, EOFError, zlib.error) as error:
        raise BadDataError(f"{path} can't be unpacked: {error}") from None
    return total


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
