"""Clang's builtins, MODE and loads to LDS in compiled kernels, against numpy and whole numbers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rpl_testkit.requirements import require

from .emu_program import CORPUS, DEVICE
from .scalar_model.conversions import converted
from .scalar_model.number_formats import F16, F32, F64, add, mul, round_to

LANES, _WORD = 64, (1 << 32) - 1


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def builtins(compiled, request) -> Path:
    name = f"builtins{request.param}.hsaco"
    return compiled(name, [require("clang++-22"), *DEVICE, request.param, CORPUS / "builtins.hip"])


@pytest.fixture(scope="module")
def optimized(compiled) -> Path:
    """At -O0 LLVM sets MODE back to the nearest around a conversion (SIModeRegister.cpp)."""
    return compiled("builtins-O3.hsaco", [require("clang++-22"), *DEVICE, "-O3", CORPUS / "builtins.hip"])


@pytest.fixture(scope="module")
def flushing(compiled) -> Path:
    options = ("-O3", "-fgpu-flush-denormals-to-zero")
    return compiled("flushing.hsaco", [require("clang++-22"), *DEVICE, *options, CORPUS / "builtins.hip"])


def _launch(emulator: Any, code: Path, kernel: str, *arguments: Any) -> list[np.ndarray]:
    """Arrays are read, a type with a length is written, a number is passed."""
    words, results = [], []
    for k, given in enumerate(arguments):
        if isinstance(given, np.ndarray):
            words.append(emulator.file(f"in{k}", given))
        elif isinstance(given, int):
            words.append(f"i32:{given}")
        else:
            kind, length = given
            results.append((emulator.output(f"out{k}"), kind))
            words.append(f"zeros:{np.dtype(kind).itemsize * length},out={results[-1][0]}")
    ran = emulator.launch(code, kernel, *words)
    assert ran.status == 0, ran.stderr
    return [np.fromfile(path, kind) for path, kind in results]


def _flushed(x: np.ndarray) -> np.ndarray:
    tiny = np.finfo(x.dtype).tiny
    return np.where(np.abs(x) < tiny, np.copysign(x.dtype.type(0), x), x)


def _near_denormals(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    r = np.random.default_rng(seed)
    return (r.normal(size=shape) * 2.0 ** r.integers(-64, -60, shape)).astype(np.float32)


def test_packed_floats_flush_what_the_kernel_asks_for(emulator, flushing, builtins):
    a, b = (_near_denormals(seed, (LANES, 2)) for seed in (1, 2))
    c = (_near_denormals(3, (LANES, 2)) * np.float32(2.0**-64)).astype(np.float32)
    out = [(np.float32, 2 * 3 * LANES)]
    for code, flush in ((flushing, _flushed), (builtins, lambda x: x)):
        (found,) = _launch(emulator, code, "pairs", a, b, c, *out)
        fused, product, total = found.reshape(3, LANES, 2)
        exact = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a.flat, b.flat, strict=True)]
        sums = [x + Fraction(float(z)) for x, z in zip(exact, flush(c).flat, strict=True)]
        expected = np.array([float(x) for x in sums]).astype(np.float32)  # of 48 bits: exact in a double
        assert np.array_equal(fused.ravel(), flush(expected))
        assert np.array_equal(product, flush((a * b).astype(np.float32)))
        assert np.array_equal(total, flush(flush(a) + flush(c)))
    assert (np.abs(c) < np.finfo(np.float32).tiny).any()  # denormals were met


def test_halves_keep_denormals_where_floats_lose_them(emulator, flushing):
    r = np.random.default_rng(4)
    a, b, c = ((r.normal(size=(LANES, 2)) * 2.0**-9).astype(np.float16) for _ in range(3))
    (found,) = _launch(emulator, flushing, "half_pairs", a, b, c, (np.float16, 2 * 2 * LANES))
    fused, product = found.reshape(2, LANES, 2)
    # Products of halves are exact in a double, and sums of these and a half here, too.
    assert np.array_equal(fused, (a.astype(float) * b + c).astype(np.float16))
    assert np.array_equal(product, (a.astype(float) * b).astype(np.float16))
    assert (np.abs(product[product != 0]) < np.finfo(np.float16).tiny).any()


def test_matrices_run_in_kernels_that_flush(emulator, flushing):
    a, b = (np.random.default_rng(k).integers(-8, 9, LANES).astype(np.float32) for k in (5, 6))
    (found,) = _launch(emulator, flushing, "matrix", a, b, (np.float32, 4 * LANES))
    product = a.reshape(4, 16).T @ b.reshape(4, 16)
    assert np.array_equal(found.reshape(4, 16, 4), product.reshape(4, 4, 16).transpose(0, 2, 1))
    tiny = np.full(LANES, 2.0**-70, np.float32)
    words = [emulator.file("a", tiny), emulator.file("b", tiny), "zeros:1024"]
    ran = emulator.launch(flushing, "matrix", *words)
    assert ran.status == 69
    assert "near the denormals" in ran.stderr


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 8, 12, 6, 11])
def test_results_are_rounded_as_mode_says(emulator, optimized, mode):
    """CDNA3 ISA, MODE: floats by bits 0 and 1, halves, doubles and conversions from doubles by 2 and 3."""
    r = np.random.default_rng(7)
    a, b = ((r.normal(size=LANES) * 10.0 ** r.integers(-6, 6, LANES)).astype(np.float32) for _ in range(2))
    h, g = ((r.normal(size=LANES) * 2.0 ** r.integers(-9, 9, LANES)).astype(np.float16) for _ in range(2))
    d = r.normal(size=LANES) * 10.0 ** r.integers(-44, 41, LANES)
    h[:2], g[:2], a[0], d[0] = 60000, 60000, 70000, 1e39
    kinds = (np.uint32, np.uint16, np.uint32, np.uint16, np.uint16, np.uint32)
    outputs = [(kind, LANES * (2 if k > 3 else 1)) for k, kind in enumerate(kinds)]
    found = _launch(emulator, optimized, "rounded", a, b, d, h, g, *outputs, mode)
    names = ("even", "up", "down", "zero")
    floats, others = names[mode & 3], names[mode >> 2]
    bits = {
        x: array.view(f"u{array.itemsize}").tolist()
        for x, array in zip("abdhg", (a, b, d, h, g), strict=True)
    }
    round_to(floats, others)
    try:
        expected = [
            [add(F32, x, y) for x, y in zip(bits["a"], bits["b"], strict=True)],
            [converted(F32, F16)(x) for x in bits["a"]],
            [converted(F64, F32, others)(x) for x in bits["d"]],
            [mul(F16, x, y) for x, y in zip(bits["h"], bits["g"], strict=True)],
            [add(F16, x, y) for z, y in zip(bits["h"], bits["g"], strict=True) for x in (z, y)],
            [add(F32, x, y) for z, y in zip(bits["a"], bits["b"], strict=True) for x in (z, y)],
        ]
    finally:
        round_to("even", "even")
    assert [x.tolist() for x in found] == expected


def test_lds_counts_lanes_and_takes_what_is_loaded(emulator, builtins):
    given = np.arange(LANES, dtype=np.int32) * 7 - 100
    place, left, turned = _launch(emulator, builtins, "through_lds", given, *3 * [(np.int32, LANES)])
    lane = np.arange(LANES)
    assert np.array_equal(place, np.where(lane & 1, 100, 0) + np.where(lane >= 48, 1000 * 132, 0))
    assert (left == 100 + 32 - 16).all()
    assert np.array_equal(turned, given[::-1])


def _parts(x: int, bits: int, signed: bool, width: int = 32) -> list[int]:
    parts = [x >> k & ((1 << bits) - 1) for k in range(0, width, bits)]
    return [p - (1 << bits) if signed and p >> (bits - 1) else p for p in parts]


def _dot(a: int, b: int, bits: int, signed: bool) -> int:
    return sum(x * y for x, y in zip(_parts(a, bits, signed), _parts(b, bits, signed), strict=True))


def _distance(a: int, b: int, bits: int, masked: bool) -> int:
    pairs = zip(_parts(a, bits, False), _parts(b, bits, False), strict=True)
    return sum(abs(x - y) for x, y in pairs if y or not masked)


def _quads(a: int, b: int, c: int, masked: bool) -> int:
    sums = (
        _distance(a >> 8 * k & 0xFFFFFFFF, b, 8, masked) + (c >> 16 * k & 0xFFFF) & 0xFFFF for k in range(4)
    )
    return sum(x << 16 * k for k, x in enumerate(sums))


def test_sums_of_bytes_and_nibbles(emulator, builtins):
    r = np.random.default_rng(8)
    a, b, c = (r.integers(0, 1 << 32, LANES, dtype=np.uint32) for _ in range(3))
    b[::3] &= 0xFF00FF
    c[:4] = (0x7FFFFFF0, 0x80000005, 0xFFFFFFF0, 0)  # what is added to these saturates
    d = r.integers(0, 1 << 63, LANES, dtype=np.uint64)
    wide, out = _launch(
        emulator, builtins, "sums", a, b, c, d, (np.uint64, 2 * LANES), (np.uint32, 6 * LANES)
    )
    rows = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    signed = [z - (z >> 31 << 32) for _, _, z in rows]
    dot4 = [_dot(x, y, 8, True) + s for (x, y, _), s in zip(rows, signed, strict=True)]
    pairs = [((x << 32 | y), z & 0x07050301) for x, y, z in rows]
    expected = [
        [min(max(x, -(1 << 31)), (1 << 31) - 1) & _WORD for x in dot4],
        [min(_dot(x, y, 4, False) + z, _WORD) for x, y, z in rows],
        [_dot(x, y, 4, True) + z & _WORD for x, y, z in rows],
        [_distance(x, y, 8, True) + z & _WORD for x, y, z in rows],
        [_distance(x, y, 16, False) + z & _WORD for x, y, z in rows],
        [sum((both >> 8 * (how >> 8 * k & 7) & 0xFF) << 8 * k for k in range(4)) for both, how in pairs],
    ]
    assert out.reshape(6, LANES).tolist() == expected
    turned = d.tolist()[::-1]
    for k, masked in enumerate((False, True)):
        quads = [_quads(x, y, z, masked) for x, (_, y, _), z in zip(d.tolist(), rows, turned, strict=True)]
        assert wide.reshape(2, LANES)[k].tolist() == quads


def test_faces_of_a_cube(emulator, builtins):
    """CDNA3 ISA, V_CUBEID, V_CUBEMA, V_CUBESC, V_CUBETC: of equal magnitudes z goes before y before x."""
    r = np.random.default_rng(9)
    x, y, z = (r.integers(-3, 4, LANES).astype(np.float32) + np.float32(0.25) for _ in range(3))
    (out,) = _launch(emulator, builtins, "cube", x, y, z, (np.float32, 4 * LANES))
    expected = []
    for a, b, c in zip(x.tolist(), y.tolist(), z.tolist(), strict=True):
        if abs(c) >= abs(a) and abs(c) >= abs(b):
            expected.append((5 if c < 0 else 4, 2 * c, -a if c < 0 else a, -b))
        elif abs(b) >= abs(a):
            expected.append((3 if b < 0 else 2, 2 * b, a, -c if b < 0 else c))
        else:
            expected.append((1 if a < 0 else 0, 2 * a, c if a < 0 else -c, -b))
    assert out.reshape(4, LANES).T.tolist() == [list(map(float, face)) for face in expected]
