"""Which inputs of a launch are tried, in which order.

Families take turns, so that a small number of inputs has something of each: numbers that only one of the two
kernels knows, remainders, edges of the types, pairs of scalars, sizes of the launch, contents, alignment. At
last there are combinations drawn by chance, always the same ones.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_vmreplay.inputs.arguments import (
    KINDS,
    MOST_CAPTURED_BYTES,
    Constants,
    Content,
    Scalar,
    Varied,
    around,
    content_of,
    pattern_of,
)
from rpl_vmreplay.interfaces import Fill, LaunchInput, MemoryRange

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import Kernel
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.capture.plain_memory import PlainMemory

#: Memory that stands for a buffer lies here, each piece by itself: what lies between belongs to nobody.
_BESIDE, _APART = 0x1000_0000_0000, 1 << 32
_LEAST_LARGE, _MOST_LARGE = 16 << 20, 256 << 20
#: As captured, where the buffer is not larger.
_MOST_TIGHT = 1 << 30
#: Elements of a buffer that hold something; zeros follow.
_MOST_FILLED = 1 << 20
_MOST_ITEMS, _MOST_WATCHED_ITEMS = 1 << 21, 1 << 14
_HUGE, _MOST_HUGE = 1 << 24, 12
_MOST_BEYOND, _MOST_MODE = 4096, 4
_PER_ITEM = (1, 2, 4, 8, 16, 3, 32)
_SMALL = (0, 1, 2, 3, 5, 7)
_EDGES = (-1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513, 1000, 1023, 1024, 1025, 4, 6,
          8, 9, 10, 11, 12, 13, 15, 16, 17, 97, 1009, 4095, 4096, 4097, -2, 65535, 65536, 65537, 100, 10000,
          100003)  # fmt: skip
_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, -0.0, -2.5, 1e-3, 1e3, 1e6, float("nan"), float("inf"), 1e-40, 3e38)


@frozen
class Wish:
    """What is other than in the captured launch. ``groups`` by axis; ``None``: as the scalars ask for.
    ``whole`` is what buffers of integers hold; ``None``: ``content``, too."""

    scalars: tuple[tuple[int, float], ...] = ()  # by place among the scalars
    content: str = "exact"
    whole: str | None = None
    groups: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    large: bool = True
    shift: int = 0  # elements by which pointers are moved
    shifted: int | None = None  # one of them; None: all


@frozen
class Chosen:
    inputs: tuple[LaunchInput, ...]
    beside: tuple[MemoryRange, ...]
    elements: Mapping[int, str]  # where a buffer begins -> what it holds


class Chooser:
    """For one launch, one pair of kernels. ``watched``: for races and the like. With ``atomics`` the order of
    waves may show in the results, so the baseline runs in two."""

    def __init__(
        self,
        capture: Capture,
        memory: PlainMemory,
        varied: Varied,
        kernels: tuple[Kernel, Kernel],
        constants: Constants,
        watched: bool,
        atomics: bool,
    ) -> None:
        self._capture, self._varied, self._constants = capture, varied, constants
        self._watched, self._atomics, self._kernels = watched, atomics, kernels
        regions = [(region.base, region.end) for region in capture.regions]
        self._huge = 0
        self._contents: dict[int, Content] = {}
        self._tight: dict[int, MemoryRange] = {}
        self._large: dict[int, MemoryRange] = {}
        size = min(_MOST_LARGE, max(_LEAST_LARGE, 16 * min(constants.largest, _MOST_LARGE)))
        begin = max(
            [_BESIDE, *(-(-end // _APART) * _APART for _, end in regions if _BESIDE <= end < 1 << 46)]
        )
        for number, address in enumerate(dict.fromkeys(one.address for one in varied.pointers)):
            pointer = next(one for one in varied.pointers if one.address == address)
            captured = memory.read(address, min(pointer.capacity, MOST_CAPTURED_BYTES))
            self._contents[address] = content_of(pointer, captured, regions)
            place = begin + 2 * number * _APART + 4096 + address % 256
            self._tight[address] = MemoryRange(place, min(pointer.capacity, _MOST_TIGHT))
            self._large[address] = MemoryRange(place + _APART, size)
        self._block: tuple[int, int, int] = tuple(max(1, one) for one in capture.dispatch.block)  # type: ignore[assignment]
        grid = capture.dispatch.grid
        self._groups = tuple(max(1, -(-size // per)) for size, per in zip(grid, self._block, strict=True))
        self._whole = all(size % per == 0 for size, per in zip(grid, self._block, strict=True))
        self._links = tuple(
            _links(varied.scalars, groups, per) for groups, per in zip(self._groups, self._block, strict=True)
        )

    def chosen(self, most: int) -> Chosen:
        """The captured launch itself comes first, beside ``most`` others."""
        wishes = itertools.islice(self._wishes(), most)
        inputs = [self._as_captured(), *(self._input(one, number) for number, one in enumerate(wishes))]
        beside = tuple(one for address in self._tight for one in (self._tight[address], self._large[address]))
        elements = {
            place.address: self._contents[address].element
            for address in self._tight
            for place in (self._tight[address], self._large[address], MemoryRange(address, 1))
        }
        return Chosen(tuple(inputs), beside, elements)

    def _as_captured(self) -> LaunchInput:
        grid = self._capture.dispatch.grid
        items = grid[0] * grid[1] * grid[2]
        watched = self._watched and items <= 8 * _MOST_WATCHED_ITEMS
        return LaunchInput(
            "as captured", grid, self._block, self._varied.kernarg, sanitize=watched, twice=self._atomics
        )

    def _wishes(self) -> Iterator[Wish]:
        """Each once, a family after the other, again and again."""
        families = [
            self._fresh(), self._contents_of_the_launch(), self._remainders(), self._sizes(), self._pairs(),
            self._shared(), self._shifts(), self._float_scalars(), self._all_scaled(), self._mixed(),
            self._beyond(), self._modes(),
        ]  # fmt: skip
        seen: set[Wish] = set()
        while families:
            for family in list(families):
                wish = next((one for one in family if one not in seen and self._affordable(one)), None)
                if wish is None:
                    families.remove(family)
                    continue
                seen.add(wish)
                yield wish
        for wish in self._drawn():
            if wish not in seen and self._affordable(wish):
                seen.add(wish)
                yield wish

    def _affordable(self, wish: Wish) -> bool:
        """Loops to huge numbers are cut off and say nothing, so there are a few of them only."""
        if any(self._varied.scalars[place].integer and abs(one) >= _HUGE for place, one in wish.scalars):
            self._huge += 1
            return self._huge <= _MOST_HUGE
        return True

    def _integers(self) -> list[tuple[int, Scalar]]:
        return [(place, one) for place, one in enumerate(self._varied.scalars) if one.integer]

    def _each(self, numbers: Sequence[int], content: str = "exact") -> Iterator[Wish]:
        for number in numbers:
            for place, scalar in self._integers():
                if number != scalar.value and abs(number) < 1 << (8 * scalar.size):
                    yield Wish(((place, number),), content, large=number > scalar.value)

    def _fresh(self) -> Iterator[Wish]:
        """Numbers of one kernel only: as a scalar, in all of them, as a count of workgroups."""
        numbers = around(self._constants.fresh)
        integers = self._integers()
        for number in numbers:
            yield from self._each([number])
            if len(integers) > 1:
                yield Wish(tuple((place, number) for place, _ in integers))
            for groups in {number, -(-(number + 2) // self._block[0])}:
                if 0 < groups * self._block[0] <= _MOST_ITEMS:
                    yield Wish(groups=(groups, *self._groups[1:]))  # type: ignore[arg-type]
                    yield from (
                        Wish(((place, groups * self._block[0] - 1),), groups=(groups, *self._groups[1:]))  # type: ignore[arg-type]
                        for place, _ in integers
                    )
        yield from self._each(around(self._constants.scaled))

    def _contents_of_the_launch(self) -> Iterator[Wish]:
        for large in (False, True):
            yield from (Wish(content=kind, large=large) for kind in KINDS if self._can_be(kind))

    def _can_be(self, kind: str) -> bool:
        return kind != "text" or any(content.element in ("u1", "i1") for content in self._contents.values())

    def _mixed(self) -> Iterator[Wish]:
        """Floats and integers of two kinds: what is no index for one buffer is a number for another."""
        kinds = {content.element[0] in "fb" for content in self._contents.values()}
        if kinds == {False, True}:
            for kind in ("special", "ties", "huge", "lowest", "ramp", "tiny", "negative", "any"):
                yield Wish(content=kind, whole="captured", large=False)
            for kind in ("near", "any", "ties", "ramp", "negative", "dictionary", "huge"):
                yield Wish(content="real", whole=kind)

    def _beyond(self) -> Iterator[Wish]:
        """Sizes well beyond each number of the code, with contents of which the last ones count."""
        kinds = itertools.cycle(("ramp", "exact", "real", "falling"))
        for number in dict.fromkeys((*self._constants.fresh, *self._constants.shared)):
            if not 2 < number <= _MOST_BEYOND:
                continue
            for size in (2 * number + 1, number + number // 2):
                for place, scalar in self._integers():
                    if size != scalar.value and size < 1 << (8 * scalar.size - 1):
                        yield Wish(((place, size),), next(kinds))
                        yield Wish(((place, size),), next(kinds))

    def _modes(self) -> Iterator[Wish]:
        """Small numbers may stand for modes, and a mode may show with few kinds of contents."""
        kinds = [one for one in (*KINDS[9:], "negative", "special", "any") if self._can_be(one)]
        modes = [place for place, one in self._integers() if 0 <= one.value <= _MOST_MODE]
        for kind in ("text", *kinds) if self._can_be("text") else kinds:
            for number in (2, 1, 3, 0, -1):
                yield from (
                    Wish(((place, number),), kind, large=False)
                    for place in modes
                    if number != self._varied.scalars[place].value
                )

    def _remainders(self) -> Iterator[Wish]:
        """Near the captured numbers, and the small ones."""
        for distance in (1, -1, 2, 3, -2, -3, 5, 7, -5, 8, 13, -13, 16, 31, 64):
            for place, scalar in self._integers():
                value = scalar.value + distance
                if scalar.value > 1 and value > 0:
                    yield Wish(((place, value),), large=distance > 0)
        for number in _SMALL:
            yield from self._each([number])
        for factor in (2, 3, 4):
            for place, scalar in self._integers():
                yield Wish(((place, scalar.value * factor + 1),))
                yield Wish(((place, scalar.value // factor),), large=False)

    def _sizes(self) -> Iterator[Wish]:
        first, *others = self._groups
        for groups in (1, 2, 3, first + 1, first - 1, 2 * first, 2 * first + 1, 7, 37, 16):
            if groups > 0 and groups != first:
                yield Wish(groups=(groups, *others))  # type: ignore[arg-type]
        for axis in (1, 2):
            if self._groups[axis] > 1:
                for groups in (1, self._groups[axis] + 1):
                    changed = list(self._groups)
                    changed[axis] = groups
                    yield Wish(groups=(changed[0], changed[1], changed[2]))
        if self._same_workgroups():
            most = min(1024, *(kernel.max_workgroup_size or 1024 for kernel in self._kernels))
            x, y, z = self._block
            if any(kernel.lds_bytes for kernel in self._kernels):  # arrays in LDS may be made for this size
                most = min(most, x * y * z)
            for size in (x // 2, 64, 128, 2 * x, 32, 512, 1024):
                if 0 < size != x and size * y * z <= most:
                    yield Wish(block=(size, y, z))
        # What is captured behind each pointer, filled to its end.
        for address, content in self._contents.items():
            count = self._tight[address].size // content.size
            yield from (
                Wish(((place, count - less),), large=False)
                for less in (0, 1)
                for place, scalar in self._integers()
                if scalar.value > 1 and 0 < count - less < 1 << 24
            )

    def _same_workgroups(self) -> bool:
        """Neither kernel is made for one size, or the other for another than the baseline."""
        a, b = self._kernels
        return (
            not a.required_workgroup
            and not b.required_workgroup
            and a.max_workgroup_size == b.max_workgroup_size
        )

    def _pairs(self) -> Iterator[Wish]:
        """Two scalars at once: fresh numbers first, then edges."""
        integers = self._integers()
        numbers = [*around(self._constants.fresh[:6]), *self._constants.shared[:6], 0, 1, 2, 3, 33, 65, 1000]
        numbers = list(dict.fromkeys(number for number in numbers if number >= 0))
        places = [place for place, _ in integers]
        pairs = list(itertools.permutations(places, 2))
        contents = itertools.cycle(("exact", "dictionary", "any"))
        for one, other in sorted(itertools.product(range(len(numbers)), repeat=2), key=sum):
            for first, second in pairs:
                content = next(contents)
                yield Wish(((first, numbers[one]), (second, numbers[other])), content)

    def _shared(self) -> Iterator[Wish]:
        yield from self._each([*around(self._constants.shared), *_EDGES])
        for _, scalar in self._integers():
            bits = 8 * scalar.size
            yield from self._each([(1 << (bits - 1)) - 1, -(1 << (bits - 1))])
            break

    def _shifts(self) -> Iterator[Wish]:
        for shift in (1, 2, 3):
            yield Wish(shift=shift)
        for number in range(len(self._contents)):
            yield Wish(shift=1, shifted=number)
        for place, scalar in self._integers():
            if scalar.value > 1:
                yield from (Wish(((place, scalar.value + more),), shift=1) for more in (1, 2, 3))

    def _float_scalars(self) -> Iterator[Wish]:
        floats = [(place, one) for place, one in enumerate(self._varied.scalars) if not one.integer]
        known = [one * scale for one in self._constants.floats[:40] for scale in (1.0, 1.001, 0.999, -1.0)]
        contents = itertools.cycle((("real", None), ("exact", "near"), ("ties", None)))
        for number in (*_FLOATS[:4], *known, *_FLOATS[4:], *map(float, self._constants.fresh[:20])):
            for place, scalar in floats:
                if number != scalar.value:
                    content, whole = next(contents)
                    yield Wish(((place, number),), content, whole)

    def _all_scaled(self) -> Iterator[Wish]:
        """Every size at once, and the contents with one of them changed."""
        integers = [(place, one.value) for place, one in self._integers() if one.value > 1]
        for number in (1, 2, 3, 17, 64, 65, 33, 100, 130, 257):
            yield Wish(tuple((place, number) for place, _ in integers))
        for kind in ("dictionary", "real", "special", "negative", "any"):
            yield from (Wish(((place, value + 3),), content=kind) for place, value in integers)
        for number in around(self._constants.fresh):
            yield from self._each([number], "dictionary")

    def _drawn(self) -> Iterator[Wish]:
        draw = random.Random(7)  # noqa: S311 - the same for everybody
        numbers = [*around(self._constants.fresh), *self._constants.shared, *_SMALL, *_EDGES]
        floats = [*_FLOATS, *self._constants.floats]
        for _ in range(10_000):
            scalars = []
            for place, scalar in enumerate(self._varied.scalars):
                if draw.random() < 0.5:
                    value = draw.choice(numbers) if scalar.integer else draw.choice(floats)
                    scalars.append((place, float(value) if not scalar.integer else value))
            content, shift = draw.choice(KINDS), draw.choice((0, 0, 1))
            yield Wish(tuple(scalars), content, shift=shift)

    def _input(self, wish: Wish, number: int) -> LaunchInput:
        scalars = self._varied.scalars
        values = {place: scalars[place].value for place in range(len(scalars))} | dict(wish.scalars)
        changes = {scalars[place].place: scalars[place].packed(value) for place, value in wish.scalars}
        block = wish.block or self._block
        groups = wish.groups or tuple(
            _groups(link, values, usual) for link, usual in zip(self._links, self._groups, strict=True)
        )
        if wish.block is not None and wish.groups is None:
            groups = (-(-groups[0] * self._block[0] // block[0]), *groups[1:])
        grid = tuple(min(count * size, 0xFFFFFFFF) for count, size in zip(groups, block, strict=True))
        if not self._whole and wish == Wish(content=wish.content, whole=wish.whole, large=wish.large):
            grid = self._capture.dispatch.grid
        largest = max([abs(int(one)) for one in values.values() if abs(one) <= _MOST_FILLED], default=1)
        sizes = sorted(abs(int(one)) for one in values.values() if 1 < abs(one) <= _MOST_FILLED)[-2:]
        if len(sizes) == 2 and sizes[0] * sizes[1] <= _MOST_FILLED:
            largest = sizes[0] * sizes[1]
        largest = max(largest, min(_MOST_FILLED, grid[0] * grid[1] * grid[2]))
        fills, pointers = [], {}
        for index, (address, content) in enumerate(self._contents.items()):
            whole = self._large[address] if wish.large else self._tight[address]
            moved = wish.shift * content.size if wish.shifted in (None, index) and wish.large else 0
            pointers[address] = whole.address + moved
            size = whole.size
            if wish.large:
                wanted = max(self._tight[address].size, 4096, content.size * (largest + 256), 1 << 14)
                size = min(whole.size, wanted)
            constants = (around(self._constants.fresh) + list(self._constants.shared), self._constants.floats)
            kind = wish.whole if wish.whole and content.element[0] in "iu" else wish.content
            numbers = [values[place] for place in range(len(scalars))]
            salt = index + 97 * number
            pattern = pattern_of(content, kind, constants, salt, size // content.size, numbers)
            fills.append(Fill(whole.address, size, pattern))
        changes |= {
            pointer.place: pointers[pointer.address].to_bytes(8, "little")
            for pointer in self._varied.pointers
        }
        items = grid[0] * grid[1] * grid[2]
        return LaunchInput(
            self._name(wish, groups, block),
            grid,  # type: ignore[arg-type]
            block,
            self._varied.with_values(changes),
            tuple(fills),
            sanitize=self._watched and items <= _MOST_WATCHED_ITEMS,
            twice=self._atomics,
        )

    def _name(self, wish: Wish, groups: Sequence[int], block: Sequence[int]) -> str:
        scalars = self._varied.scalars
        parts = [
            f"argument at {scalars[place].place} = {format(value, 'g' if isinstance(value, float) else 'd')}"
            for place, value in wish.scalars
        ]
        if tuple(groups) != self._groups:
            parts.append(f"{'x'.join(map(str, groups))} workgroups")
        if tuple(block) != self._block:
            parts.append(f"of {'x'.join(map(str, block))}")
        if wish.shift:
            parts.append("pointers moved by " + str(wish.shift))
        if wish.whole:
            parts.append(f"{wish.whole} integers")
        return ", ".join([*parts, f"{wish.content} contents"])


@frozen
class _Link:
    """An axis has as many workgroups as the product of these scalars needs, with ``per`` for each."""

    places: tuple[int, ...] = ()
    per: int = 1


def _links(scalars: Sequence[Scalar], groups: int, block: int) -> _Link | None:
    """The simplest reason why the launch has so many workgroups."""
    integers = [(place, int(one.value)) for place, one in enumerate(scalars) if one.integer and one.value > 0]
    for per in (*(block * factor for factor in _PER_ITEM), *_PER_ITEM):
        for place, value in sorted(integers, key=lambda one: -one[1]):
            if -(-value // per) == groups:
                return _Link((place,), per)
        for (first, one), (second, other) in itertools.combinations(integers, 2):
            if -(-one * other // per) == groups:
                return _Link((first, second), per)
    return None


def _groups(link: _Link | None, values: Mapping[int, float], usual: int) -> int:
    if link is None:
        return usual
    product = 1
    for place in link.places:
        product *= int(values[place])
    groups = -(-product // link.per)
    return groups if 0 < groups * 64 <= _MOST_ITEMS else usual
