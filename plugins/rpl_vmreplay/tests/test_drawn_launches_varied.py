"""Inputs that take a captured one's place, of drawn launches: what each must be to mean anything.

A pointer leads into memory of its own buffer with room for all work-items, what a name tells is what the
arguments hold, and what is not told is as captured. Arguments are read back with ``struct``; contents by the
list of kinds in ``rpl_vmreplay.inputs.arguments``.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from rpl_vmreplay.inputs.arguments import (
    KINDS,
    Constants,
    Content,
    Pointer,
    Scalar,
    Varied,
    content_of,
    pattern_of,
)
from rpl_vmreplay.inputs.choose import Chooser

LETTERS = {"i1": "b", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "f2": "e", "f4": "f", "f8": "d"}
MIXED = ("i4", "u4", "f4", "f8", "u1", "bf", "b1", "i8", "f2")
FRESH = (48, 1000, -7)


class Launch:
    """A drawn one: buffers in captured memory, scalars of which the first may be the number of items."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.block = (rng.choice((32, 64, 100)), rng.choice((1, 1, 2)), 1)
        groups = (rng.randint(1, 5), rng.choice((1, 3)), 1)
        self.items = groups[0] * self.block[0] - rng.choice((0, 0, 5))
        self.grid = (self.items, groups[1] * self.block[1], 1)
        self.groups = groups
        places = iter(range(0, 400, 8))
        kinds = ["i4", *rng.choices(list(LETTERS), k=rng.randint(0, 2))]
        self.scalars = [Scalar(next(places), kind, self.value(kind)) for kind in kinds]
        self.scalars[0] = Scalar(self.scalars[0].place, "i4", self.items)
        base, self.regions, self.pointers, self.held = 0x7F0000000000, [], [], {}
        for element in rng.sample(MIXED, rng.randint(1, 3)):
            size = 8 * rng.randint(40, 400)
            address = base + 256 * rng.randint(0, 2) + 8 * rng.randint(0, 3)
            self.regions.append(SimpleNamespace(base=base, end=address + size))
            self.held[address] = np.random.default_rng(seed).integers(1, 9, size, np.uint8).tobytes()
            self.pointers.append(Pointer(next(places), address, size, element))
            if rng.random() < 0.3:  # the same buffer twice
                self.pointers.append(Pointer(next(places), address, size, element))
            base += 1 << 21
        kernarg = bytearray(next(places))
        for scalar in self.scalars:
            struct.pack_into("<" + LETTERS[scalar.kind], kernarg, scalar.place, scalar.value)
        for pointer in self.pointers:
            struct.pack_into("<Q", kernarg, pointer.place, pointer.address)
        self.varied = Varied(bytes(kernarg), tuple(self.scalars), tuple(self.pointers))
        self.atomics, self.watched = rng.random() < 0.5, rng.random() < 0.5

    def value(self, kind: str) -> float:
        return self.rng.choice((0.5, 2.0)) if kind[0] == "f" else self.rng.choice((1, 3, 100))

    def inputs(self, most: int):
        capture = SimpleNamespace(
            regions=self.regions, dispatch=SimpleNamespace(block=self.block, grid=self.grid)
        )
        memory = SimpleNamespace(read=lambda address, size: self.held[address][:size])
        kernel = SimpleNamespace(max_workgroup_size=512, required_workgroup=None, lds_bytes=0)
        constants = Constants(FRESH, (64, 16), (6, 24), (0.25, 3.0))
        chooser = Chooser(
            capture, memory, self.varied, (kernel, kernel), constants, self.watched, self.atomics
        )
        return chooser.chosen(most)


def told(name: str) -> tuple[dict[int, float], list[int] | None, list[int] | None, int]:
    """Scalars by their place, workgroups, their size and by how much pointers move, as a name says."""
    scalars = {int(p): float(v) for p, v in re.findall(r"argument at (\d+) = ([^,]+)", name)}
    groups = re.search(r"([\dx]+) workgroups", name)
    block = re.search(r", of ([\dx]+)|^of ([\dx]+)", name)
    moved = re.search(r"pointers moved by (\d+)", name)
    return (
        scalars,
        None if groups is None else [int(one) for one in groups[1].split("x")],
        None if block is None else [int(one) for one in (block[1] or block[2]).split("x")],
        int(moved[1]) if moved else 0,
    )


@pytest.mark.parametrize("seed", range(12))
def test_every_input_is_a_launch_that_can_be(seed):
    launch = Launch(seed)
    chosen = launch.inputs(150)
    first, *others = chosen.inputs
    assert (first.name, first.grid, first.block) == ("as captured", launch.grid, launch.block)
    assert (first.kernarg, first.fills) == (launch.varied.kernarg, ())
    assert len(others) == 150
    assert {one.twice for one in chosen.inputs} == {launch.atomics}
    assert chosen == launch.inputs(150), "always the same ones"
    ranges = sorted((one.address, one.address + one.size) for one in chosen.beside)
    taken = sorted([*ranges, *((one.base, one.end) for one in launch.regions)])
    assert all(one[1] < other[0] for one, other in itertools.pairwise(taken)), "each by itself"
    huge = 0
    for one in others:
        scalars, groups, block, moved = told(one.name)
        by_place = {scalar.place: scalar for scalar in launch.scalars}
        for place, scalar in by_place.items():
            (value,) = struct.unpack_from("<" + LETTERS[scalar.kind], one.kernarg, place)
            wanted = scalars.get(place, scalar.value)
            if scalar.kind[0] != "f":
                bits = 8 * scalar.size
                assert (value - int(wanted)) % (1 << bits) == 0, one.name
            elif not math.isnan(wanted):
                assert value == pytest.approx(wanted, rel=1e-3, abs=1e-7) or abs(wanted) > 6e4, one.name
        huge += any(abs(v) >= 1 << 24 for p, v in scalars.items() if by_place[p].kind[0] != "f")
        assert list(one.block) == (block or list(launch.block))
        count = [-(-size // per) for size, per in zip(one.grid, one.block, strict=True)]
        if block is None:
            assert count == (groups or list(launch.groups)), one.name
        if scalars or moved or groups or block:
            assert all(size % per == 0 for size, per in zip(one.grid, one.block, strict=True)), one.name
        items = math.prod(one.grid)
        assert one.sanitize == (launch.watched and items <= 1 << 14)
        fills = {(fill.address, fill.address + fill.size): fill for fill in one.fills}
        assert len(fills) == len(launch.held), "one for each buffer"
        leads: dict[int, int] = {}
        for pointer in launch.pointers:
            (to,) = struct.unpack_from("<Q", one.kernarg, pointer.place)
            assert leads.setdefault(pointer.address, to) == to, "the same buffer"
            (begin, end) = next(span for span in fills if span[0] <= to < span[1])
            whole = next(one for one in chosen.beside if one.address == begin)
            element = 2 if pointer.element == "bf" else int(pointer.element[1])
            assert end <= whole.address + whole.size
            assert chosen.elements[begin] == chosen.elements[pointer.address] == pointer.element
            assert (begin - pointer.address) % 256 == 0, "as it was aligned"
            assert to - begin in (0, moved * element), one.name
            if whole.size != pointer.capacity:
                room = max([min(items, 1 << 20), *(abs(v) for v in scalars.values() if abs(v) <= 1 << 20)])
                assert end - to >= min(element * room, whole.size - 4096), one.name
            pattern = fills[begin, end].pattern
            assert pattern
            assert len(pattern) % element == 0
        assert len({*leads.values()}) == len(leads), "no buffer lies in another"
    assert huge <= 12


def test_each_family_has_its_turn():
    launch = Launch(3)
    launch.scalars, launch.pointers = launch.scalars[:2], launch.pointers[:1]
    launch.varied = Varied(launch.varied.kernarg, (*launch.scalars,), (*launch.pointers,))
    names = [one.name for one in launch.inputs(900).inputs[1:]]
    first = launch.scalars[0].place
    tried = {value for name in names for place, value in told(name)[0].items() if place == first}
    assert {number + more for number in FRESH for more in (-1, 0, 1)} <= tried, "of one kernel only"
    assert {launch.items + more for more in (1, -1, 2, 3)} <= tried, "remainders"
    assert {0, 1, 2, 3, 5, 7} <= tried
    early = names[:24]
    for what in (
        f"argument at {first} =",
        "workgroups",
        "pointers moved",
        "exact contents",
        "captured contents",
    ):
        assert any(what in name for name in early), what
    usable = {kind for kind in KINDS if kind != "text" or "u1" in {p.element for p in launch.pointers}}
    assert usable <= {name.rpartition(" ")[0].rpartition(" ")[2] for name in names}
    assert any(name.count("argument at") == 2 for name in names) == (len(launch.scalars) > 1)


@pytest.mark.parametrize(("per", "block"), [(1, 64), (2, 64), (4, 100)])
def test_the_launch_grows_with_the_number_that_it_is_made_for(per, block):
    """``n`` elements, some for each work-item: another ``n`` gets the workgroups that it asks for."""
    launch = Launch(0)
    launch.block, launch.groups = (block, 1, 1), (7, 1, 1)
    launch.grid = (7 * block, 1, 1)
    count = 7 * block * per - 3
    launch.scalars = [Scalar(0, "i4", count)]
    launch.varied = Varied(
        struct.pack("<iixxxxQ", count, 0, launch.pointers[0].address)[:24], (*launch.scalars,), ()
    )
    seen = set()
    for one in launch.inputs(60).inputs[1:]:
        scalars, groups, size, _ = told(one.name)
        if 0 in scalars and size is None and 0 < scalars[0] <= 20_000:
            wanted = -(-int(scalars[0]) // (block * per))
            if groups is None or wanted == groups[0]:
                assert one.grid == (wanted * block, 1, 1), one.name
                seen.add(wanted)
    assert len(seen) >= 5


def decoded(pattern: bytes, element: str) -> np.ndarray:
    if element == "bf":
        return (np.frombuffer(pattern, "<u2").astype("<u4") << 16).view("<f4").astype(float)
    return np.frombuffer(pattern, f"<{element}")


@pytest.mark.parametrize("element", ["f2", "bf", "f4", "f8"])
def test_what_floats_hold_by_their_kind(element):
    captured = Content(element, b"\1" * 64, holds_addresses=False, ascending=False)
    numbers = ((48, 49), (0.25, 3.0))

    def of(kind, salt=1, elements=10_000):
        return decoded(pattern_of(captured, kind, numbers, salt, elements, (100.0, 0.5)), element)

    with np.errstate(all="ignore"):
        greatest = {"f2": 65504, "bf": 3.38e38, "f4": 3.4028e38, "f8": 1.797e308}[element]
        small = 2 if element in ("f2", "bf") else 8
        assert set(of("exact")) == set(range(-small, small + 1))
        assert set(of("zero")) == {0.0}
        assert set(of("one")) == {1.0}
        assert set(of("negative")) == set(range(-small - 1, 0))
        assert 0.9 < of("real").std() < 1.1
        assert abs(of("real").mean()) < 0.1
        special = of("special")
        assert np.isnan(special).any()
        assert (special == np.inf).any()
        assert (special == -np.inf).any()
        assert 0.03 < (~np.isfinite(special) | (np.abs(special) > 100)).mean() < 0.15
        assert (of("huge") > greatest / 2).any()
        assert (of("huge") < -greatest / 2).any()
        assert np.isin(of("huge"), range(-small, small + 1)).mean() > 0.4
        assert np.abs(of("tiny")).max() <= (2.0**-20 if element == "f2" else 2.0**-120)
        near = {scale * one for one in (0.25, 3.0) for scale in (1, 1.001, 0.999, -1)}
        known = [any(abs(v - n) <= abs(n) / 128 for n in near) for v in of("dictionary") if v != int(v)]
        assert known
        assert all(known)
        assert set(of("ties") * 64 % 1) == {0.0}
        assert np.abs(of("ties")).max() <= 64
        assert (of("ties") % 1 == 0.5).any()
        assert of("lowest").max() < -greatest / 4096
        assert np.isfinite(of("lowest").astype(float) * 100).all() or element == "f8"
        assert (np.diff(of("ramp")) >= 0).all()
        assert of("ramp")[-1] > of("ramp")[0] == 0
        assert (of("falling") == of("ramp")[::-1]).all()
        assert (of("near") == 100).any()
        assert (of("near") == 0.5).any()
        assert pattern_of(captured, "captured", numbers, 1, 9) == captured.captured
        for kind in ("exact", "real", "special", "ties", "near"):
            assert len(of(kind)) == 4093, "a prime"
            assert len(of(kind, elements=100)) == 100
            same = [of(kind).tobytes() == of(kind, salt).tobytes() for salt in (1, 2)]
            assert same == [True, False], "each input another one"


@pytest.mark.parametrize("element", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_what_integers_hold_by_their_kind(element):
    least, most = np.iinfo(element).min, np.iinfo(element).max
    used = np.array([3, 90, 17, 4], element).tobytes()
    captured = Content(element, used, holds_addresses=False, ascending=False)

    def of(kind, content=captured):
        return decoded(
            pattern_of(content, kind, ((48, 49, 1 << 70), ()), 1, 3000, (100.0, -2.0)), element
        ).astype(object)

    for kind in ("exact", "real"):
        assert (min(of(kind)), max(of(kind))) == (3, 90), "as far as the captured ones go"
    assert (set(of("zero")), set(of("one"))) == ({0}, {1})
    assert set(of("huge")) == {0, most}
    assert set(of("tiny")) == {0, 1}
    assert set(of("dictionary")) == {48, 49}
    assert set(of("special")) == {48, 49, least, most}
    assert set(of("lowest")) <= set(range(least, least + 101))
    assert len(set(of("ties"))) == 3 or set(of("ties")) <= set(range(3, 91))
    assert list(of("ramp")[:90]) == [3 + one % 88 for one in range(90)]
    assert list(of("falling")) == list(of("ramp")[::-1])
    assert set(of("near")) - set(range(3, 91)) == {
        one
        for one in (99, 100, 101, -1, -2, -3, 0, least, most)
        if least <= one <= most and not 3 <= one <= 90
    }
    if least < 0:
        assert set(of("negative")) == set(range(-8, 0))
    if element in ("i1", "u1"):
        assert set(map(chr, of("text"))) == set("AaBbZzYy@[`{ 09")
        assert np.isin(of("text"), list(b"AaBb")).mean() > 0.7
    rising = Content(element, used, holds_addresses=False, ascending=True)
    for kind in KINDS[1:]:
        assert (np.diff(of(kind, rising)) >= 0).all(), kind
    addresses = Content(element, used, holds_addresses=True, ascending=False)
    assert all(list(of(kind, addresses)) == [3, 90, 17, 4] for kind in KINDS)


@pytest.mark.parametrize("element", ["i1", "u1", "i4", "u4", "i8", "f4", "bf", "b1"])
def test_what_is_captured_tells_addresses_and_offsets(element):
    """Offsets rise to their end, behind which zeros lie; a word into captured memory is an address."""
    draw = random.Random(element)
    size = 2 if element == "bf" else int(element[1])
    regions = [(0x7F0000000000, 0x7F0000001000), (0x100, 0x200)]
    for _ in range(150):
        count = 64 // size
        numbers = [draw.randint(0, 99) for _ in range(draw.randint(0, count))]
        if draw.random() < 0.6:
            numbers.sort()
        if draw.random() < 0.2:
            numbers = [7] * len(numbers)
        numbers += [0] * (count - len(numbers))
        captured = b"".join(number.to_bytes(size, "little") for number in numbers)
        words = [int.from_bytes(captured[at : at + 8], "little") for at in range(0, 64, 8)]
        if draw.random() < 0.3:
            words[3] = draw.choice(
                (0x7F0000000000, 0x7F0000000FFF, 0x7F0000001000, 0xFF, 0x100, 0x200, 0x1FF)
            )
            captured = b"".join(word.to_bytes(8, "little") for word in words)
            numbers = [int.from_bytes(captured[at : at + size], "little") for at in range(0, 64, size)]
        found = content_of(Pointer(0, 0, 64, element), captured, regions)
        assert found.holds_addresses == any(b <= word < e for word in words for b, e in regions)
        used = numbers[: max((n + 1 for n, number in enumerate(numbers) if number), default=0)]
        if element[0] == "i":
            used = [number - (number >> (8 * size - 1) << (8 * size)) for number in used]
        rises = len(used) > 2 and used == sorted(used) and used[0] != used[-1]
        assert found.ascending == (rises and element[0] in "iu" and element != "u1")
        assert (found.element, found.captured, found.size) == (element, captured, size)


def test_what_is_not_told_is_guessed_by_the_size_of_numbers():
    floats = np.array([1.5, -2e3, 3e-4, 7.0] * 8, "<f4").tobytes()
    whole = np.arange(1, 33, dtype="<i4").tobytes()
    for captured, element in ((floats, "f4"), (whole, "i4"), (bytes(64), "f4"), (floats + whole, "i4")):
        assert content_of(Pointer(0, 0, 64, None), captured, ()).element == element
