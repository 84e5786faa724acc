"""One capture as a value: opened, its parts in agreement with each other, or refused; and its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import FailFast, Field, ValidationError

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import read_regular, refuse_countless, refuse_repeats
from rpl_core.values import frozen
from rpl_vmreplay.capture.bounds import Name, Part, Positive, VariableFile
from rpl_vmreplay.capture.layout import (
    AFTER_FOLDER,
    AFTER_HASHES_SUFFIX,
    BEFORE_HASHES_SUFFIX,
    BYTES_SUFFIX,
    CHUNK_BYTES,
    CODE_OBJECT,
    DISPATCH,
    EXTRAS,
    HASH_BYTES,
    KERNARG,
    PACKED_SUFFIX,
    REGIONS,
    SENTINEL,
)
from rpl_vmreplay.capture.records import Dispatch, Extras, MemoryRegion, ModuleVariable, Region, Regions

#: kerncap's own: variables of modules, its second description of the launch, and the file written last.
VARIABLES = "module_variables.json"
KERNCAP_METADATA = "metadata.json"
KERNCAP_COMPLETE = "capture_complete"

#: A region takes some 150 bytes of text: this is half a million of them.
LARGEST_JSON_BYTES = 64 << 20
#: The sentinel names five files.
LARGEST_SENTINEL_BYTES = 1 << 20


class Variable(Part):
    """One variable of a module, as kerncap keeps it."""

    name: Name
    size: Positive
    blob: VariableFile

    @property
    def file_name(self) -> str:
        return self.blob


class Variables(Part):
    """``module_variables.json``."""

    variables: Annotated[tuple[Variable, ...], Field(strict=False), FailFast()]


_Model = TypeVar("_Model", bound=Part)


def read_json(folder: Path, name: str, model: type[_Model], most: int = LARGEST_JSON_BYTES) -> _Model:
    """The file of that name, or the reason why it is refused."""
    path = folder / name
    if not path.exists():
        raise MissingError(
            f"{name} is not in {folder}",
            cause="no capture, or one that was cut short",
            next_step="name a folder that `rpl isolate` wrote",
        )
    require_plain(path)
    content = read_regular(path, most, links=False)
    refuse_countless(content, path)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadDataError(f"{path} can't be used: {place + ': ' if place else ''}{first['msg']}") from None


def require_plain(path: Path) -> None:
    """A link could lead out of the capture, a pipe would never end."""
    if path.is_symlink() or not path.is_file():
        raise BadDataError(f"{path} is not a plain file")


def chunk_hash(content: bytes) -> bytes:
    """Of one chunk, as ``.xxh3`` files hold it."""
    import xxhash

    return int(xxhash.xxh3_64_intdigest(content)).to_bytes(HASH_BYTES, "little")


def doubts_of(extras: Extras) -> tuple[str, ...]:
    """Why a replay of the capture may do something else."""
    doubts = list(extras.warnings)
    if extras.drain.undrained:
        doubts.append("work on another queue may have gone on while the memory was read")
    if extras.host_writers:
        doubts.append("the program wrote to memory while it was captured")
    return tuple(doubts)


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
    # By address. kerncap lists a reservation and the mapping that fills it: the same bytes, twice.
    kept: list[Region] = []
    for region in sorted(listed, key=lambda region: (region.base, region.size)):
        if kept and (kept[-1].base, kept[-1].size) == (region.base, region.size):
            continue
        if kept and region.base < kept[-1].end:
            raise BadDataError(
                f"{folder / REGIONS}: the regions at 0x{kept[-1].base:x} and 0x{region.base:x} overlap",
                cause="the list was changed, or memory was freed and allocated anew while it was written",
            )
        kept.append(region)
    regions = tuple(kept)
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


# How two captures differ: the launch, its arguments, its code, the list of regions, the bytes.


@frozen
class BytesDifference:
    """Bytes of the same place that are not the same."""

    name: str
    first: int
    count: int


@frozen
class Difference:
    """Everything in which two captures differ; nothing when they are alike."""

    #: Field of the launch, its value before and after.
    fields: tuple[tuple[str, object, object], ...]
    #: Regions that only one of them has, as text.
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    bytes: tuple[BytesDifference, ...]

    @property
    def alike(self) -> bool:
        return not (self.fields or self.only_before or self.only_after or self.bytes)


def difference(before: Capture, after: Capture) -> Difference:
    """Both captures are whole: their files have the sizes that they say."""
    old, new = before.dispatch.model_dump(), after.dispatch.model_dump()
    places = {(region.base, region.size) for region in before.regions}
    others = {(region.base, region.size) for region in after.regions}
    return Difference(
        fields=tuple((name, old[name], new[name]) for name in old if old[name] != new[name]),
        only_before=_region_texts(places - others),
        only_after=_region_texts(others - places),
        bytes=tuple(_bytes_differences(before, after, places & others)),
    )


def _region_texts(places: set[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(f"0x{base:x}, {size} bytes" for base, size in sorted(places))


def _bytes_differences(
    before: Capture, after: Capture, places: set[tuple[int, int]]
) -> Iterator[BytesDifference]:
    for name in (KERNARG, CODE_OBJECT):
        if changed := _compare(_whole_file(before.folder / name), _whole_file(after.folder / name)):
            yield BytesDifference(name, *changed)
    others = {region.base: region for region in after.regions}
    for region in before.regions:
        if (region.base, region.size) not in places:
            continue
        other = others[region.base]
        pair = (before.path_of(region), region.size), (after.path_of(other), region.size)
        if changed := _compare(*pair):
            yield BytesDifference(f"region 0x{region.base:x}", region.base + changed[0], changed[1])
        kept = before.path_after(region), after.path_after(other)
        if kept[0] and kept[1] and (changed := _compare((kept[0], region.size), (kept[1], region.size))):
            yield BytesDifference(
                f"region 0x{region.base:x} after the launch", region.base + changed[0], changed[1]
            )
    yield from _variable_differences(before, after)


def _variable_differences(before: Capture, after: Capture) -> Iterator[BytesDifference]:
    others = {(variable.name, variable.size): variable for variable in after.variables}
    for variable in before.variables:
        other = others.get((variable.name, variable.size))
        if other is None:
            continue
        pair = _whole_file(before.folder / variable.blob), _whole_file(after.folder / other.blob)
        if changed := _compare(*pair):
            yield BytesDifference(f"variable {variable.name}", *changed)


_Contents = tuple["Path", int]  # a file and how many bytes it stands for


def _whole_file(path: Path) -> _Contents:
    return path, path.stat().st_size


def _compare(before: _Contents, after: _Contents) -> tuple[int, int] | None:
    """Offset of the first difference and how many bytes differ; a longer file differs in its end."""
    first: int | None = None
    common = min(before[1], after[1])
    count = abs(before[1] - after[1])
    for offset, old, new in _blocks_of_both(before, after):
        pair = old[: common - offset], new[: common - offset]
        if pair[0] == pair[1]:
            continue
        differing = [i for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b]
        count += len(differing)
        first = offset + differing[0] if first is None else first
    if count and first is None:
        first = common
    return None if first is None else (first, count)


def _blocks_of_both(before: _Contents, after: _Contents) -> Iterator[tuple[int, bytes, bytes]]:
    """Blocks where one of them has data, filled with zeros where the other has none."""
    streams = blocks_with_data(*before), blocks_with_data(*after)
    common = min(before[1], after[1])
    old, new = next(streams[0], None), next(streams[1], None)
    while old or new:
        offset = min(one[0] for one in (old, new) if one)
        if offset >= common:
            return
        zeros = bytes(min(BLOCK_BYTES, common - offset))
        pair = [zeros, zeros]
        if old and old[0] == offset:
            pair[0], old = old[1], next(streams[0], None)
        if new and new[0] == offset:
            pair[1], new = new[1], next(streams[1], None)
        yield offset, pair[0], pair[1]
