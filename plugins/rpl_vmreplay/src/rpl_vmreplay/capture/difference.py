"""How two captures differ: the launch, its arguments, its code, the list of regions, the bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import BLOCK_BYTES, Capture, blocks_with_data
from rpl_vmreplay.capture.layout import CODE_OBJECT, KERNARG


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
        if changed := _compare(_plain(before.folder / name), _plain(after.folder / name)):
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
        pair = _plain(before.folder / variable.blob), _plain(after.folder / other.blob)
        if changed := _compare(*pair):
            yield BytesDifference(f"variable {variable.name}", *changed)


_Contents = tuple["Path", int]  # a file and how many bytes it stands for


def _plain(path: Path) -> _Contents:
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
