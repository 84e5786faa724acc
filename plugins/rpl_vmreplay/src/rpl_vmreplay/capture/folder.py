"""One capture as a value: opened, its parts in agreement with each other, or refused; and its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import refuse_repeats
from rpl_core.values import frozen
from rpl_vmreplay.capture.files import (
    KERNCAP_COMPLETE,
    KERNCAP_METADATA,
    VARIABLES,
    Variable,
    Variables,
    read_json,
)
from rpl_vmreplay.capture.layout import (
    AFTER_FOLDER,
    AFTER_HASHES_SUFFIX,
    BEFORE_HASHES_SUFFIX,
    BYTES_SUFFIX,
    CHUNK_BYTES,
    DISPATCH,
    EXTRAS,
    PACKED_SUFFIX,
    REGIONS,
    SENTINEL,
)
from rpl_vmreplay.capture.records import Dispatch, Extras, MemoryRegion, ModuleVariable, Region, Regions

BLOCK_BYTES = CHUNK_BYTES
#: What a packed byte stands for at most: a block of 4 bytes is one byte 128 KiB long (RFC 8878, 3.1.1.2).
_LARGEST_RATIO = (128 << 10) // 4
_FRAME_BYTES = 64
#: Larger windows are for archives; the capture tool's are far smaller.
_LARGEST_WINDOW = 128 << 20


def blocks_with_data(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each block of ``BLOCK_BYTES`` that may hold something; the others are zeros.

    Raises BadDataError for a packed file that holds other than ``size`` bytes.
    """
    if path.suffix == PACKED_SUFFIX:
        yield from _unpacked(path, size)
        return
    if size <= BLOCK_BYTES:  # of which there may be half a million
        with path.open("rb", buffering=0) as whole:
            yield 0, whole.read(size)
        return
    with path.open("rb") as stream:
        for offset in _offsets_with_data(stream.fileno(), size):
            stream.seek(offset)
            yield offset, stream.read(min(BLOCK_BYTES, size - offset))


def packed_size_problem(name: str, packed_bytes: int, size: int) -> str | None:
    """Why a packed file of ``packed_bytes`` can't hold ``size`` bytes, told without unpacking it."""
    most = (packed_bytes + _FRAME_BYTES) * _LARGEST_RATIO
    return None if size <= most else f"{name} is far too small to hold {size} bytes"


def _offsets_with_data(descriptor: int, size: int) -> Iterator[int]:
    offset = 0
    while offset < size:
        try:
            data = os.lseek(descriptor, offset, os.SEEK_DATA)
        except OSError:  # nothing but holes up to the end
            return
        offset = data // BLOCK_BYTES * BLOCK_BYTES
        if offset >= size:
            return
        yield offset
        offset += BLOCK_BYTES


def _unpacked(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise MissingError(
            f"{path.name} is packed, and this Python can't unpack it",
            next_step="pip install 'rpl-vmreplay[zstd]'",
        ) from None
    offset = 0
    unpacker = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    try:
        with path.open("rb") as packed, unpacker.stream_reader(packed, read_across_frames=True) as reader:
            while block := _filled(reader, min(BLOCK_BYTES, size - offset) or 1):
                if offset >= size:
                    raise BadDataError(f"{path.name} holds more than {size} bytes")
                yield offset, block
                offset += len(block)
    except zstandard.ZstdError as error:
        raise BadDataError(f"{path.name} can't be unpacked: {error}") from None
    if offset != size:
        raise BadDataError(f"{path.name} holds {offset} bytes, {size} are said to be in it")


def _filled(reader: object, size: int) -> bytes:
    """``size`` bytes, or what is left."""
    parts = []
    while size and (part := reader.read(size)):  # type: ignore[attr-defined]
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# One capture as a value: opened, its parts in agreement with each other, or refused.


@frozen
class Capture:
    """What a capture folder says. The bytes of regions stay on disk."""

    folder: Path
    #: Which tool's layout it is: ``rpl``, ``rocm-perf-lab`` or ``kerncap``.
    layout: str
    dispatch: Dispatch
    regions: tuple[Region, ...]
    variables: tuple[Variable, ...]
    #: Whether the tool says that it finished; None: its layout can't say.
    complete: bool | None
    #: What rpl's own tool tells beside; None: another tool's, or cut short before it was written.
    extras: Extras | None = None
    #: The same of single regions, by address: there may be half a million.
    told: Mapping[int, MemoryRegion] = MappingProxyType({})
    #: The same of variables, by their files.
    told_variables: Mapping[str, ModuleVariable] = MappingProxyType({})

    @property
    def kernel_name(self) -> str:
        """As the compiler named it: capturing tools add how they found it."""
        return self.dispatch.mangled_name.removesuffix(" [clone .kd]").removesuffix(".kd")

    @property
    def bytes(self) -> int:
        return sum(region.size for region in self.regions)

    def name_of(self, region: Region) -> str:
        """The file below ``folder`` with the bytes before the launch."""
        return region.file_name + self._suffix

    def name_after(self, region: Region) -> str | None:
        """The file with the bytes after the launch, when they were kept."""
        if self.extras is None or self.extras.memory.post != "bytes":
            return None
        return f"{AFTER_FOLDER}/{region.file_name.partition('/')[2]}{self._suffix}"

    def hashes_name(self, part: Region | Variable, moment: str) -> str | None:
        """The file with the hashes of ``"pre"`` or ``"post"``, when they were kept."""
        if self.extras is None or self.extras.memory.hash == "none":
            return None
        if moment == "post" and self.extras.memory.post == "none":
            return None
        suffix = AFTER_HASHES_SUFFIX if moment == "post" else BEFORE_HASHES_SUFFIX
        return part.file_name.removesuffix(BYTES_SUFFIX) + suffix

    def path_of(self, region: Region) -> Path:
        return self.folder / self.name_of(region)

    def path_after(self, region: Region) -> Path | None:
        name = self.name_after(region)
        return None if name is None else self.folder / name

    def hashes_of(self, part: Region | Variable, moment: str) -> Path | None:
        name = self.hashes_name(part, moment)
        return None if name is None else self.folder / name

    @property
    def _suffix(self) -> str:
        packed = self.extras is not None and self.extras.memory.compression == "zstd"
        return PACKED_SUFFIX if packed else ""

    def extras_of(self, region: Region) -> MemoryRegion | None:
        return self.told.get(region.base)

    def extras_of_variable(self, variable: Variable) -> ModuleVariable | None:
        return self.told_variables.get(variable.blob)


def open_capture(folder: Path) -> Capture:
    """The capture in ``folder``, without reading the memory.

    Raises MissingError for what is no capture and BadDataError for one that contradicts itself.
    """
    dispatch = read_json(folder, DISPATCH, Dispatch)
    layout = _layout(folder)
    listed = read_json(folder, REGIONS, Regions).regions
    extras = read_json(folder, EXTRAS, Extras) if (folder / EXTRAS).exists() else None
    if layout == "rpl":  # each tells its own figures of a region, and only one of them could count
        refuse_repeats((f"0x{region.base:x}" for region in listed), folder / REGIONS, "one region")
        if extras is not None:
            told = (f"0x{region.base:x}" for region in extras.memory.regions)
            refuse_repeats(told, folder / EXTRAS, "one region")
    regions = _without_repetitions(listed, folder)
    sentinel = {"rpl": SENTINEL, "kerncap": KERNCAP_COMPLETE}.get(layout)
    return Capture(
        folder=folder,
        layout=layout,
        dispatch=dispatch,
        regions=regions,
        variables=_variables(folder, extras),
        complete=(folder / sentinel).exists() if sentinel else None,
        extras=extras,
        told={} if extras is None else {region.base: region for region in extras.memory.regions},
        told_variables={}
        if extras is None
        else {variable.file: variable for variable in extras.module_variables},
    )


def _layout(folder: Path) -> str:
    if (folder / EXTRAS).exists() or (folder / SENTINEL).exists():
        return "rpl"
    kerncap = (folder / KERNCAP_METADATA).exists() or (folder / KERNCAP_COMPLETE).exists()
    return "kerncap" if kerncap else "rocm-perf-lab"


def _variables(folder: Path, extras: Extras | None) -> tuple[Variable, ...]:
    if extras is not None:
        return tuple(
            Variable(name=variable.name, size=variable.size, blob=variable.file)
            for variable in extras.module_variables
        )
    return read_json(folder, VARIABLES, Variables).variables if (folder / VARIABLES).exists() else ()


def _without_repetitions(regions: tuple[Region, ...], folder: Path) -> tuple[Region, ...]:
    """By address. kerncap lists a reservation and the mapping that fills it: the same bytes, twice."""
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: (region.base, region.size)):
        if kept and (kept[-1].base, kept[-1].size) == (region.base, region.size):
            continue
        if kept and region.base < kept[-1].end:
            raise BadDataError(
                f"{folder / REGIONS}: the regions at 0x{kept[-1].base:x} and 0x{region.base:x} overlap",
                cause="the list was changed, or memory was freed and allocated anew while it was written",
            )
        kept.append(region)
    return tuple(kept)
