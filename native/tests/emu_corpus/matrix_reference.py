"""Matrix products of gfx942 by exact products and sums in double, laid out as the ISA document says."""

from __future__ import annotations

import re

import attrs
import numpy as np

#: Rows and depth of shapes with several blocks, by the type of the factors.
_BLOCKS = {(32, 1): 2, (16, 1): 4, (4, 1): 16}
_BLOCKS_OF_FOUR = {32: 2, 16: 4, 4: 16}
_PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def _eight_bit(exponent_bits: int, mantissa_bits: int, bias: int) -> np.ndarray:
    values = np.zeros(256)
    for code in range(256):
        exponent, mantissa = code >> mantissa_bits & (2**exponent_bits - 1), code & (2**mantissa_bits - 1)
        part = mantissa / 2**mantissa_bits
        size = part * 2.0 ** (1 - bias) if exponent == 0 else (1 + part) * 2.0 ** (exponent - bias)
        values[code] = -size if code >> 7 else size
    values[0x80] = np.nan
    return values


EIGHT_BIT = {"fp8": _eight_bit(4, 3, 8), "bf8": _eight_bit(5, 2, 16)}


def _factors(kind: str, shape: tuple[int, int], r: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bits as the registers have them, and their values."""
    x = r.uniform(-2, 2, shape)
    if kind == "i8":
        whole = r.integers(-128, 128, shape).astype(np.int8)
        return whole, whole.astype(float)
    if kind in EIGHT_BIT:
        codes = r.integers(0, 256, shape).astype(np.uint8)
        codes[codes == 0x80] = 3
        return codes, EIGHT_BIT[kind][codes]
    if kind == "bf16":
        upper = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return upper, (upper.astype(np.uint32) << 16).view(np.float32).astype(float)
    if kind == "xf32":
        x = np.round(x * 16) / 16  # exact in ten bits of fraction
    types = {"f64": np.float64, "f16": np.float16, "f32": np.float32, "xf32": np.float32}
    bits = x.astype(types[kind])
    return bits, bits.astype(float)


@attrs.frozen
class Case:
    """Registers of 64 lanes, the values that D must have, and how far they may be off."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    index: np.ndarray
    d: np.ndarray
    tolerance: np.ndarray


def _cell(kind: str, rows: int, lane: int, word: int) -> tuple[int, int, int]:
    """Block, row and column of D that a lane's element is."""
    if kind == "f64":
        return (lane // 4 % 4, lane // 16, lane % 4) if rows == 4 else (0, 4 * word + lane // 16, lane % 16)
    if rows == 4:
        return lane // 4, word, lane % 4
    if rows == 16:
        return word // 4, 4 * (lane // 16) + word % 4, lane % 16
    return word // 16, 8 * (word % 16 // 4) + 4 * (lane // 32) + word % 4, lane % 32


def matrix_case(name: str, kinds: str, sparse: bool, seed: int) -> Case:
    """One random product for a builtin of ``matrix_kernels.shapes()``."""
    r = np.random.default_rng(seed)
    found = re.search(r"_(\d+)x\d+x(\d+)", name)
    assert found is not None
    rows, depth = int(found[1]), int(found[2])
    first, _, second = kinds.partition("_")
    second = second or first
    blocks = _BLOCKS.get((rows, depth), 1)
    if depth == 4 and first in ("f16", "bf16", "i8"):
        blocks = _BLOCKS_OF_FOUR[rows]
    if (rows, first) == (4, "f64"):
        blocks = 4
    each = depth // (64 // rows // blocks)
    a_bits, a = _factors(first, (64, each // 2 if sparse else each), r)
    b_bits, b = _factors(second, (64, each), r)
    chosen = r.integers(0, 6, (64, max(1, each // 4)))
    left, right = np.zeros((blocks, rows, depth)), np.zeros((blocks, depth, rows))
    index = np.zeros(64, np.uint32)
    for lane in range(64):
        block, k = lane // rows % blocks, lane // rows // blocks * each
        right[block, k : k + each, lane % rows] = b[lane]
        if not sparse:
            left[block, lane % rows, k : k + each] = a[lane]
            continue
        for pair in range(each // 4):
            low, high = _PAIRS[chosen[lane, pair]]
            index[lane] |= np.uint32((low | high << 2) << (4 * pair))
            left[block, lane % rows, k + 4 * pair + low] = a[lane, 2 * pair]
            left[block, lane % rows, k + 4 * pair + high] = a[lane, 2 * pair + 1]
    words = rows * rows * blocks // 64
    if first == "i8":
        c = r.integers(-1000, 1000, (64, words)).astype(np.int32)
    else:
        c = r.uniform(-2, 2, (64, words)).astype(np.float64 if first == "f64" else np.float32)
    product, size = left @ right, np.abs(left) @ np.abs(right)
    d, tolerance = np.zeros((64, words)), np.zeros((64, words))
    step = {"i8": 0.0, "f64": 2.0**-52}.get(first, 2.0**-23)
    for lane in range(64):
        for word in range(words):
            at = _cell(first, rows, lane, word)
            d[lane, word] = product[at] + c[lane, word]
            tolerance[lane, word] = (size[at] + abs(c[lane, word])) * step * depth
    return Case(a_bits, b_bits, c, index, d, tolerance)
