"""Code objects that a recording points to: files beside it, and the URIs that it holds.

A URI is data of whoever made the recording. It is read as a file of this machine only, if that is a regular
file, within a limit, and nothing of its content is shown.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from rpl_core.errors import BadDataError, ForeignFileError, MissingError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MAX_RECORDED_BYTES", "code_beside", "read_uri"]

#: The largest code object that is read without having been named by the user, and how many (chosen).
MAX_RECORDED_BYTES = 64 << 20
_MAX_FILES = 64
_MAX_LISTED = 20_000
_SUFFIXES = (".hsaco", ".co")
#: ``<prefix>_<gfx>_code_object_id_<id>.out``, which rocprofv3 leaves beside thread traces
#: (docs/reference/thread-trace.md, 2.1).
_OF_THREAD_TRACE = re.compile(r"(?:.*_)?code_object_id_\d{1,9}\.out")
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")


def code_beside(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Regular files right in ``folders`` named like code objects; links are not followed."""
    paths: list[Path] = []
    for folder in dict.fromkeys(folders):
        paths += [path for path in _listed(folder) if _is_code_name(path.name) and _is_small_file(path)]
    return tuple(paths[:_MAX_FILES])


def read_uri(uri: str) -> tuple[bytes, str]:
    """The bytes that ``file:///path#offset=N&size=N`` names, and the name of the file.

    Raises ``ForeignFileError`` for other URIs, ``MissingError`` without the file, ``BadDataError`` where it
    is no regular file, too large or shorter than the URI says.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise ForeignFileError("a URI of a code object that can't be read") from None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise ForeignFileError(
            f"the code object was loaded from {parts.scheme or 'an unknown place'}, not from a file",
            next_step="give the file with --code-object",
        )
    path = Path(os.fsdecode(unquote_to_bytes(parts.path)))
    offset, size = _range(parts.fragment)
    return _read(path, offset, size), path.name


def _range(fragment: str) -> tuple[int, int | None]:
    given = dict(part.partition("=")[::2] for part in fragment.split("&"))
    for text in given.values():
        if text and _NUMBER.fullmatch(text) is None:
            raise BadDataError("the URI of a code object has an impossible offset or size")
    size = given.get("size")
    return int(given.get("offset") or "0", 0), int(size, 0) if size else None


def _read(path: Path, offset: int, size: int | None) -> bytes:
    try:
        # O_NONBLOCK: opening a pipe must not wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise MissingError(f"{path.name}: {reason}", next_step="give the file with --code-object") from None
    try:
        return os.pread(descriptor, _wanted(os.fstat(descriptor), path.name, offset, size), offset)
    finally:
        os.close(descriptor)


def _wanted(facts: os.stat_result, name: str, offset: int, size: int | None) -> int:
    """How many bytes to read. Raises ``BadDataError`` where they are not there or too many."""
    if not stat.S_ISREG(facts.st_mode):
        raise BadDataError(f"{name or 'a folder'} is no regular file")
    wanted = facts.st_size - offset if size is None else size
    if wanted > MAX_RECORDED_BYTES:
        raise BadDataError(
            f"{name} is larger than {MAX_RECORDED_BYTES >> 20} MiB", next_step="give it with --code-object"
        )
    if offset + wanted > facts.st_size or wanted <= 0:
        raise BadDataError(f"{name} ends before the code object does", cause="it was rebuilt")
    return wanted


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:_MAX_LISTED]
    except OSError:
        return []


def _is_code_name(name: str) -> bool:
    return name.endswith(_SUFFIXES) or _OF_THREAD_TRACE.fullmatch(name) is not None


def _is_small_file(path: Path) -> bool:
    try:
        facts = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_size <= MAX_RECORDED_BYTES
