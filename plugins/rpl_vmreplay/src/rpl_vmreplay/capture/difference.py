"""How two captures differ: the launch, its arguments, its code, the list of regions, the bytes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from rpl_core.values import frozen
from rpl_vmreplay.capture.files import CODE_OBJECT, KERNARG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rpl_vmreplay.capture.folder import Capture

_BLOCK_BYTES = 1 << 20


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
        only_before=_told(places - others),
        only_after=_told(others - places),
        bytes=tuple(_bytes_differences(before, after, places & others)),
    )


def _told(places: set[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(f"0x{base:x}, {size} bytes" for base, size in sorted(places))


def _bytes_differences(
    before: Capture, after: Capture, places: set[tuple[int, int]]
) -> Iterator[BytesDifference]:
    for name in (KERNARG, CODE_OBJECT):
        if found := _compare(before.folder / name, after.folder / name):
            yield BytesDifference(name, *found)
    for region in before.regions:
        if (region.base, region.size) in places and (
            found := _compare(before.path_of(region), after.path_of(region))
        ):
            first, count = found
            yield BytesDifference(f"region 0x{region.base:x}", region.base + first, count)


def _compare(before: Path, after: Path) -> tuple[int, int] | None:
    """Offset of the first difference and how many bytes differ; a longer file differs in its end."""
    first: int | None = None
    count = 0
    sizes = before.stat().st_size, after.stat().st_size
    with before.open("rb") as old, after.open("rb") as new:
        for offset in _places_with_data(old, new, min(sizes)):
            old.seek(offset)
            new.seek(offset)
            pair = old.read(_BLOCK_BYTES), new.read(_BLOCK_BYTES)
            if pair[0] == pair[1]:
                continue
            differing = [i for i, (a, b) in enumerate(zip(*pair, strict=False)) if a != b]
            count += len(differing)
            if first is None and differing:
                first = offset + differing[0]
    if sizes[0] != sizes[1]:
        count += abs(sizes[0] - sizes[1])
        first = min(sizes) if first is None else first
    return None if first is None else (first, count)


def _places_with_data(old: BinaryIO, new: BinaryIO, size: int) -> Iterator[int]:
    """Offsets of blocks; those that are holes in both files are passed over, gigabytes at a time."""
    offset = 0
    while offset < size:
        data = min(_next_data(old, offset, size), _next_data(new, offset, size))
        offset = data // _BLOCK_BYTES * _BLOCK_BYTES if data > offset else offset
        if offset >= size or data >= size:
            return
        yield offset
        offset += _BLOCK_BYTES


def _next_data(stream: BinaryIO, offset: int, size: int) -> int:
    try:
        return os.lseek(stream.fileno(), offset, os.SEEK_DATA)
    except OSError:  # nothing but holes up to the end
        return size
