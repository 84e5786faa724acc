"""Read every code object of a file, whatever it is packed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_codeobject.reading.bundles import (
    BUNDLE_MAGIC,
    ELF_MAGIC,
    BundledCode,
    refuse_unreadable,
    split_bundle,
    split_section,
)
from rpl_codeobject.reading.compressed_bundle import COMPRESSED_MAGIC
from rpl_codeobject.reading.elf_file import device_code_object, host_fatbin, is_device_elf
from rpl_core.errors import BadDataError, ForeignFileError, MissingError
from rpl_core.files.bounded import read_regular

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_codeobject.values import CodeObject

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
