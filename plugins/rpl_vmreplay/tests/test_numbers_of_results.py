"""Distances, places and tolerances of written numbers, by listing the numbers that a format has.

Formats by IEEE 754-2019, 3.4; bfloat16 is the upper half of a binary32. What is expected comes from lists of
all 16-bit patterns in the order of their values, from ``math.nextafter`` and ``math.ulp``, and from Python's
own comparisons of one element after the other.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from rpl_vmreplay.compare.experiment import Answer, Baseline, LoggedAccesses, WriteSet, slices
from rpl_vmreplay.compare.judge import Judgement, Measure, Verdict, compared
from rpl_vmreplay.compare.outputs import (
    NOT_A_NUMBER,
    DataType,
    Output,
    bytes_of,
    changed_inputs,
    distance,
    distances,
    last_places,
    movement,
    numbers_of,
    values_of,
)
from rpl_vmreplay.interfaces import MemoryRange

FLOATS = (DataType.F64, DataType.F32, DataType.F16, DataType.BF16)
SHORT = (DataType.F16, DataType.BF16)
_WIDTH = {DataType.F64: "Q", DataType.F32: "I", DataType.F16: "H", DataType.BF16: "H"}


def _number(kind: DataType, bits: int) -> float:
    if kind is DataType.BF16:
        kind, bits = DataType.F32, bits << 16
    of = {DataType.F64: "<d", DataType.F32: "<f", DataType.F16: "<e"}[kind]
    return float(struct.unpack(of, bits.to_bytes(struct.calcsize(of), "little"))[0])


def _content(kind: DataType, bits: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(bits)}{_WIDTH[kind]}", *bits)


@cache
def _in_order(kind: DataType) -> tuple[float, ...]:
    """All numbers of a format of 16 bits, infinities too, each once."""
    return tuple(sorted({n for n in (_number(kind, bits) for bits in range(1 << 16)) if not math.isnan(n)}))


@cache
def _rank(kind: DataType) -> dict[float, int]:
    return {number: rank for rank, number in enumerate(_in_order(kind))}


def _drawn(kind: DataType, rng: random.Random, count: int) -> list[int]:
    """Bits of numbers of all sizes, with the odd ones among them."""
    bits = 8 * kind.size
    fraction = {DataType.F64: 52, DataType.F32: 23, DataType.F16: 10, DataType.BF16: 7}[kind]
    infinity = (1 << bits - 1) - (1 << fraction)
    odd = [
        0,
        1 << bits - 1,
        1,
        infinity - 1,
        infinity,
        infinity | 1 << bits - 1,
        infinity + 1,
        (1 << bits) - 1,
    ]
    return [*odd, *(rng.getrandbits(bits) for _ in range(count - len(odd)))]


@pytest.mark.parametrize("kind", SHORT)
def test_distances_are_ranks_apart_in_the_list_of_all_numbers(kind: DataType) -> None:
    rng, rank = random.Random(kind.value), _rank(kind)
    left, right = _drawn(kind, rng, 400), _drawn(kind, rng, 400)
    rng.shuffle(right)
    found = distances(kind, _content(kind, left), _content(kind, right)).tolist()
    for apart, a, b in zip(
        found, (_number(kind, x) for x in left), (_number(kind, x) for x in right), strict=True
    ):
        if math.isnan(a) or math.isnan(b):
            assert apart == (0 if math.isnan(a) and math.isnan(b) else NOT_A_NUMBER)
        else:
            assert apart == abs(rank[a] - rank[b])


def _next(kind: DataType, number: float) -> float:
    if kind is DataType.F64:
        return math.nextafter(number, math.inf)
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.float32(number), np.float32(np.inf)))


@pytest.mark.parametrize("kind", [DataType.F32, DataType.F64])
def test_distances_are_steps_to_the_next_number(kind: DataType) -> None:
    rng = random.Random(kind.value)
    of = "<d" if kind is DataType.F64 else "<f"
    for bits in _drawn(kind, rng, 60):
        number = _number(kind, bits)
        if math.isnan(number) or number == math.inf:
            continue
        steps, other = rng.randint(0, 9), number
        taken = 0
        while taken < steps and other != math.inf:
            other, taken = _next(kind, other), taken + 1
        pair = struct.pack(of, number), struct.pack(of, other)
        assert distances(kind, *pair).tolist() == distances(kind, *reversed(pair)).tolist() == [taken]


@pytest.mark.parametrize("kind", FLOATS)
def test_what_a_last_place_is_worth(kind: DataType) -> None:
    """The way to the next larger magnitude; for an infinity or no number that of a zero."""
    rng = random.Random(kind.value)
    numbers = [_number(kind, bits) for bits in _drawn(kind, rng, 200)]
    expected = []
    for number in (abs(n) if math.isfinite(n) else 0.0 for n in numbers):
        if kind is DataType.F64:
            expected.append(math.ulp(number))
        elif kind is DataType.F32:
            largest = np.finfo(np.float32).max
            expected.append(
                float(np.spacing(np.float32(number) if number < largest else np.nextafter(largest, 0)))
            )
        else:
            at, listed = _rank(kind)[number], _in_order(kind)
            last = listed[at + 1] == math.inf
            expected.append(listed[at] - listed[at - 1] if last else listed[at + 1] - listed[at])
    assert last_places(kind, np.array(numbers)).tolist() == expected


@pytest.mark.parametrize("kind", FLOATS)
def test_bytes_are_the_numbers_they_were_and_are_told_so_that_they_can_be_read_back(kind: DataType) -> None:
    bits = _drawn(kind, random.Random(kind.value), 100)
    content = _content(kind, bits)
    numbers = [_number(kind, one) for one in bits]
    assert numbers_of(kind, content).tolist() == pytest.approx(numbers, rel=0, abs=0, nan_ok=True)
    finite = _content(kind, [b for b, n in zip(bits, numbers, strict=True) if not math.isnan(n)])
    assert bytes_of(kind, numbers_of(kind, finite)) == finite
    for told, number in zip(values_of(kind, content), numbers, strict=True):
        with np.errstate(over="ignore"):
            read = float(told) if kind is DataType.F64 else float(np.float32(told))
        if kind in SHORT:
            assert math.isnan(number) == math.isnan(read)
            assert read == pytest.approx(number, rel=1e-5, nan_ok=True)
        else:
            assert read == pytest.approx(number, rel=0, abs=0, nan_ok=True)
    assert values_of(DataType.BYTES, b"\x00\x0a\xff") == ["0x00", "0x0a", "0xff"]


@pytest.mark.parametrize("kind", FLOATS)
def test_movement_is_the_largest_difference_of_any_run(kind: DataType) -> None:
    rng = random.Random(kind.value)
    usual = _drawn(kind, rng, 64)
    runs = [
        [one if rng.random() < 0.5 else rng.getrandbits(8 * kind.size) for one in usual] for _ in range(3)
    ]
    found = movement(kind, _content(kind, usual), [_content(kind, run) for run in runs]).tolist()
    for place, bits in enumerate(usual):
        at, most = _number(kind, bits), 0.0
        for run in runs:
            other = _number(kind, run[place])
            if other == at or (math.isnan(other) and math.isnan(at)):
                continue
            apart = abs(other - at)
            most = max(most, math.inf if math.isnan(apart) else apart)
        assert found[place] == most
    one = distance(kind, _content(kind, usual), _content(kind, runs[0])).tolist()
    assert one == movement(kind, _content(kind, usual), [_content(kind, runs[0])]).tolist()


def test_inputs_are_changed_by_a_1024th_of_themselves_up_and_down() -> None:
    numbers = np.arange(1.0, 65.0)
    edit = (MemoryRange(4096, 512), DataType.F64, numbers.tobytes())
    draws = []
    for draw in range(3):
        (found,) = changed_inputs([edit], draw)
        assert found.address == 4096
        changed = np.frombuffer(found.data, np.float64)
        by = (changed - numbers) / numbers
        assert np.abs(by).tolist() == [2.0**-10] * 64
        assert 16 < (by > 0).sum() < 48
        draws.append(found.data)
    assert len(set(draws)) == 3
    assert changed_inputs([edit], 1)[0].data == draws[1]


# Whole answers, element by element.


def _apart(kind: DataType, a: bytes, b: bytes) -> int:
    if kind is DataType.BYTES:
        return 0 if a == b else NOT_A_NUMBER
    x, y = (_number(kind, int.from_bytes(one, "little")) for one in (a, b))
    if math.isnan(x) or math.isnan(y):
        return 0 if math.isnan(x) and math.isnan(y) else NOT_A_NUMBER
    if kind in SHORT:
        return abs(_rank(kind)[x] - _rank(kind)[y])
    ordered = []
    for one in (a, b):
        bits = int.from_bytes(one, "little")
        sign = 1 << 8 * kind.size - 1
        ordered.append(-(bits - sign) if bits >= sign else bits)
    return abs(ordered[0] - ordered[1])


def _near(kind: DataType, content: bytes, rng: random.Random) -> bytes:
    """Some elements a few places away, some anywhere."""
    size = kind.size
    found = b""
    for at in range(0, len(content), size):
        bits = int.from_bytes(content[at : at + size], "little")
        if rng.random() < 0.2:
            bits = (bits + rng.randint(1, 6)) % (1 << 8 * size)
        elif rng.random() < 0.05:
            bits = rng.getrandbits(8 * size)
        found += bits.to_bytes(size, "little")
    return found


def _element(kind: DataType, content: bytes, at: int) -> bytes:
    return content[at * kind.size : (at + 1) * kind.size]


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_is_judged_element_by_element(seed: int) -> None:
    """By one tolerance for all, by what each element may move by, and by a bound of rounding behind it."""
    rng = random.Random(seed)
    verdicts = set()
    for kind in (*FLOATS, DataType.BYTES):
        count, size = 24, kind.size
        # Two ranges with a gap between them.
        ranges = (MemoryRange(4096, 10 * size), MemoryRange(8192, 14 * size))
        output = Output("out", 4096, kind, ranges)
        numbers = [
            _content(kind, _drawn(kind, rng, count)) if kind is not DataType.BYTES else rng.randbytes(count)
        ]
        usual = numbers[0]
        given = _near(kind, usual, rng)
        tolerance = 0 if kind is DataType.BYTES else rng.choice((0, 2, 4))
        moves = bound = None
        if kind is not DataType.BYTES and seed % 2:
            scale = last_places(kind, numbers_of(kind, usual))
            moves = scale * np.array([rng.choice((0, 1, 3)) for _ in range(count)])
            if seed % 4 == 1:
                bound = scale * np.array([rng.choice((0, 2, 5)) for _ in range(count)])
        measure = Measure(output, (0, 1), 0, tolerance, moves=moves, bound=bound)
        split = 10 * size
        baseline = Baseline(
            WriteSet(ranges, (), ()), LoggedAccesses(), ((usual[:split], usual[split:]),), 1.0
        )
        answer = Answer(None, (given[:split], given[split:]))
        judgement = compared(answer, baseline, [measure])
        wrong, by_rounding = [], []
        for at in range(count):
            pair = _element(kind, usual, at), _element(kind, given, at)
            apart = _apart(kind, *pair)
            allowed = apart <= (tolerance if moves is None else 0)
            if kind is not DataType.BYTES and not allowed:
                x, y = (_number(kind, int.from_bytes(one, "little")) for one in pair)
                far = math.inf if math.isnan(x) or math.isnan(y) or math.isnan(y - x) else abs(y - x)
                allowed = moves is not None and far <= moves[at]
                if not allowed and bound is not None and far <= bound[at]:
                    allowed = True
                    by_rounding.append((far, float(bound[at])))
            if not allowed:
                wrong.append(at)
        _check(judgement, wrong, output, usual, given)
        assert judgement.outputs[0].worst == max(
            _apart(kind, _element(kind, usual, at), _element(kind, given, at)) for at in range(count)
        )
        # The largest difference that only the bound of rounding allows, with that bound.
        furthest = max(by_rounding, key=lambda one: one[0], default=(None, None))
        assert (judgement.outputs[0].apart, judgement.outputs[0].allowed) == furthest
        verdicts.add(judgement.verdict)
    assert Verdict.DIFFERENT in verdicts


def _check(judgement: Judgement, wrong: list[int], output: Output, usual: bytes, given: bytes) -> None:
    (result,) = judgement.outputs
    kind = output.kind
    assert result.differing == len(wrong)
    assert judgement.verdict is (Verdict.DIFFERENT if wrong else Verdict.EQUAL)
    if not wrong:
        assert (result.first, result.expected, result.found) == (None, None, None)
        return
    places = [address for one in output.ranges for address in range(one.address, one.address + one.size)]
    assert result.first == MemoryRange(places[wrong[0] * kind.size], kind.size)
    assert result.expected == values_of(kind, _element(kind, usual, wrong[0]))[0]
    assert result.found == values_of(kind, _element(kind, given, wrong[0]))[0]
    assert judgement.reason.startswith(f"{len(wrong)} values behind out differ")
    assert f"0x{result.first.address:x}" in judgement.reason


def test_ranges_are_cut_out_of_the_regions_that_hold_them() -> None:
    rng = random.Random(3)
    regions = (MemoryRange(100, 40), MemoryRange(200, 8), MemoryRange(208, 30))
    contents = [rng.randbytes(one.size) for one in regions]
    memory = {
        one.address + i: data[i] for one, data in zip(regions, contents, strict=True) for i in range(one.size)
    }
    wanted = (MemoryRange(100, 3), MemoryRange(130, 10), MemoryRange(200, 8), MemoryRange(209, 5))
    assert list(slices(regions, contents, wanted)) == [
        bytes(memory[one.address + i] for i in range(one.size)) for one in wanted
    ]
