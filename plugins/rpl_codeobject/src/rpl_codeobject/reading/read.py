"""Read every code object of a file, whatever it is packed in, and those that a recording points to."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from rpl_codeobject.reading.bundles import (
    BUNDLE_MAGIC,
    COMPRESSED_MAGIC,
    ELF_MAGIC,
    BundledCode,
    refuse_unreadable,
    split_bundle,
    split_section,
)
from rpl_codeobject.reading.elf_file import device_code_object, host_fatbin, is_device_elf
from rpl_codeobject.values import CodeObject
from rpl_core.errors import BadDataError, ForeignFileError, MissingError
from rpl_core.files.bounded import read_regular

#: The largest file that is read; shipped GPU libraries reach a few hundred megabytes.
MAX_FILE_BYTES = 1 << 30


def read_code_objects(path: Path) -> tuple[CodeObject, ...]:
    """Code objects of ``path`` in file order, at least one.

    Takes ``.hsaco`` files, offload bundles (compressed ones too), and host programs or objects with a
    ``.hip_fatbin`` section. Raises ``MissingError`` without the file or without a decoder for zstd,
    ``ForeignFileError`` for other formats, ``BadDataError`` for damage.
    """
    if path.exists() and not path.is_file():
        raise BadDataError(f"{path} is no regular file", next_step="name a .hsaco or an executable")
    if not path.is_file():
        raise MissingError(f"no file at {path}", next_step="check the path")
    return code_objects_from(read_regular(path, MAX_FILE_BYTES), str(path))


def code_objects_from(data: bytes, where: str) -> tuple[CodeObject, ...]:
    """The same for bytes in memory; ``where`` names them in messages."""
    codes = _unpack(data, where)
    if not codes:
        raise BadDataError(f"{where}: no device code inside")
    return tuple(
        device_code_object(code.code, where if code.entry is None else f"{where} [{code.entry}]")
        for code in codes
    )


def _unpack(data: bytes, where: str) -> tuple[BundledCode, ...]:
    if data.startswith((BUNDLE_MAGIC, COMPRESSED_MAGIC)):
        return split_bundle(data, where)
    refuse_unreadable(data, where)
    if not data.startswith(ELF_MAGIC):
        raise ForeignFileError(
            f"{where}: neither an ELF file nor an offload bundle", next_step="name a .hsaco or an executable"
        )
    if is_device_elf(data, where):
        return (BundledCode(None, data),)
    section = host_fatbin(data, where)
    if section is None:
        raise ForeignFileError(
            f"{where}: a host program without device code", cause="it has no .hip_fatbin section"
        )
    return split_section(section, where)


# Code objects that a recording points to: files beside it, and the URIs that it holds.
#
# A URI is data of whoever made the recording. It is read as a file of this machine only, if that is a
# regular file, within a limit, and nothing of its content is shown.

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
