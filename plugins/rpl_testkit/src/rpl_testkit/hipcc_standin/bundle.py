"""The offload bundle of the stand-in: clang's, with three entries more that belong to the CPU.

Layout of ``__CLANG_OFFLOAD_BUNDLE__``: clang's ``ClangOffloadBundler`` document. Who looks for device
code passes over entries of the host.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["ARGUMENTS", "KERNELS", "SOURCE", "bundle_entries", "with_entries"]

#: A shared library with the kernels for the CPU; lines of a kernel's name and the sizes of its arguments; the
#: bytes of the source that both were compiled from.
KERNELS, ARGUMENTS, SOURCE = "host-rpl-kernels", "host-rpl-arguments", "host-rpl-source"
_MAGIC: Final = b"__CLANG_OFFLOAD_BUNDLE__"
_COUNT: Final = struct.Struct("<Q")
_ENTRY: Final = struct.Struct("<QQQ")
#: As clang aligns device code, which the runtime maps.
_ALIGNMENT: Final = 4096


def bundle_entries(data: bytes, start: int = 0) -> Iterator[tuple[str, bytes]]:
    """Name and content of each entry of the bundle at ``start``. ValueError where there is none."""
    if not data.startswith(_MAGIC, start):
        raise ValueError("no offload bundle")
    at = start + len(_MAGIC)
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    for _ in range(count):
        offset, size, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        yield data[at : at + length].decode(), data[start + offset : start + offset + size]
        at += length


def sources_in(section: bytes) -> Iterator[bytes]:
    """The source of each bundle in a section ``.hip_fatbin``, which holds one per translation unit."""
    at = section.find(_MAGIC)
    while at >= 0:
        entries = dict(bundle_entries(section, at))
        if SOURCE in entries:
            yield entries[SOURCE]
        # The magic may also stand inside of an entry, so what the bundle holds is passed over.
        at = section.find(_MAGIC, at + max(len(_MAGIC), sum(map(len, entries.values()))))


def with_entries(data: bytes, more: Mapping[str, bytes]) -> bytes:
    """The bundle ``data`` with the entries ``more`` behind its own."""
    entries = {**dict(bundle_entries(data)), **more}
    end = len(_MAGIC) + _COUNT.size + sum(_ENTRY.size + len(name.encode()) for name in entries)
    header, content = [_MAGIC, _COUNT.pack(len(entries))], b""
    begin = -(-end // _ALIGNMENT) * _ALIGNMENT
    for name, code in entries.items():
        header += [_ENTRY.pack(begin + len(content), len(code), len(name.encode())), name.encode()]
        content += code + bytes(-len(code) % _ALIGNMENT)
    return b"".join(header).ljust(begin, b"\0") + content
