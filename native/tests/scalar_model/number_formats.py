"""Binary floating point by exact integers: unpack, operate without loss, round once.

A result is the bits of a number, or what the public documents allow where they leave it open: ``NAN`` (a
quiet one, its sign and payload are the hardware's affair), ``Near`` (an approximation) or ``OneOf``.
"""

from __future__ import annotations

from math import isqrt

import attrs


@attrs.frozen
class Format:
    """``special``: the highest exponent is for infinities and not-a-numbers, as IEEE 754 has it."""

    width: int
    fraction: int
    bias: int
    special: bool = True

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)

    @property
    def highest_exponent(self) -> int:
        return (1 << (self.width - 1 - self.fraction)) - 1

    @property
    def infinity(self) -> int:
        return self.highest_exponent << self.fraction

    @property
    def largest(self) -> int:
        return self.infinity - 1 if self.special else self.sign_bit - 1

    @property
    def quiet_bit(self) -> int:
        return 1 << (self.fraction - 1)


F16, F32, F64 = Format(16, 10, 15), Format(32, 23, 127), Format(64, 52, 1023)
BF16 = Format(16, 7, 127)
#: The 8-bit formats of gfx942: no infinity, no negative zero, 0x80 is not a number.
FP8, BF8 = Format(8, 3, 8, special=False), Format(8, 2, 16, special=False)
EIGHT_BIT_NAN = 0x80


class _Nan:
    def __repr__(self) -> str:
        return "NAN"


NAN = _Nan()


@attrs.frozen
class Near:
    bits: int
    ulps: int = 1


@attrs.frozen
class OneOf:
    values: tuple[int, ...]


Result = int | _Nan | Near | OneOf


def sign(f: Format, a: int) -> int:
    return a >> (f.width - 1)


def magnitude(f: Format, a: int) -> int:
    return a & (f.sign_bit - 1)


def exponent(f: Format, a: int) -> int:
    return magnitude(f, a) >> f.fraction


def is_nan(f: Format, a: int) -> bool:
    return magnitude(f, a) > f.infinity if f.special else a == EIGHT_BIT_NAN


def is_signalling(f: Format, a: int) -> bool:
    return is_nan(f, a) and not a & f.quiet_bit


def is_infinite(f: Format, a: int) -> bool:
    return f.special and magnitude(f, a) == f.infinity


def is_zero(f: Format, a: int) -> bool:
    return magnitude(f, a) == 0


def is_denormal(f: Format, a: int) -> bool:
    return 0 < magnitude(f, a) < 1 << f.fraction


def quiet(f: Format, a: int) -> int:
    return a | f.quiet_bit


def unpack(f: Format, a: int) -> tuple[int, int]:
    """A finite number as integer times a power of two; the integer carries the sign."""
    biased, low = exponent(f, a), a & ((1 << f.fraction) - 1)
    whole = low if biased == 0 else low | 1 << f.fraction
    return (-whole if sign(f, a) else whole), max(biased, 1) - f.bias - f.fraction


#: Where results are rounded to while an instruction runs: of floats, and of doubles and halves.
_directions = {"floats": "even", "others": "even"}


def round_to(floats: str, others: str) -> None:
    """``even``, ``up``, ``down`` or ``zero``, for what follows."""
    _directions.update(floats=floats, others=others)


def direction(f: Format) -> str:
    return _directions["floats" if f is F32 else "others"]


def _rounded(kept: int, rest: int, half: int, how: str, negative: int = 0) -> int:
    if how == "even":
        return kept + (rest > half or (rest == half and kept & 1))
    return kept + (rest > 0 and how == ("down" if negative else "up"))


def pack(f: Format, negative: int, whole: int, power: int, how: str = "") -> int:
    """The number of the format that is next to ``whole * 2**power``, by one rounding."""
    how = how or direction(f)
    top = f.sign_bit if negative else 0
    if whole == 0:
        return top
    lowest = max(power + whole.bit_length() - f.fraction - 1, 1 - f.bias - f.fraction)
    drop = lowest - power
    if drop > 0:
        half = 1 << (drop - 1)
        whole = _rounded(whole >> drop, whole & ((1 << drop) - 1), half, how, negative)
    else:
        whole <<= -drop
    if whole.bit_length() > f.fraction + 1:
        whole, lowest = whole >> 1, lowest + 1
    if whole < 1 << f.fraction:
        return top | whole
    biased = lowest + f.fraction + f.bias
    bits = (biased << f.fraction) + whole - (1 << f.fraction)
    if bits > f.largest:
        stays = how not in ("even", "down" if negative else "up")
        return top | (f.largest if stays or not f.special else f.infinity)
    return top | bits


def zero_sum(f: Format, a_sign: int, b_sign: int) -> int:
    """The sign of a sum that is exactly zero (IEEE 754, 6.3)."""
    negative = a_sign if a_sign == b_sign else direction(f) == "down"
    return f.sign_bit if negative else 0


def pack_signed(f: Format, whole: int, power: int, how: str = "") -> int:
    return pack(f, whole < 0, abs(whole), power, how)


def negated(f: Format, a: int) -> int:
    return a ^ f.sign_bit


def fma(f: Format, a: int, b: int, c: int, power: int = 0) -> Result:
    """``(a * b + c) * 2**power``."""
    if any(is_nan(f, x) for x in (a, b, c)):
        return NAN
    product_sign = sign(f, a) ^ sign(f, b)
    if is_infinite(f, a) or is_infinite(f, b):
        if is_zero(f, a) or is_zero(f, b) or (is_infinite(f, c) and sign(f, c) != product_sign):
            return NAN
        return f.infinity | (f.sign_bit if product_sign else 0)
    if is_infinite(f, c):
        return c
    (m, p), (n, q), (r, s) = unpack(f, a), unpack(f, b), unpack(f, c)
    low = min(p + q, s)
    total = (m * n << (p + q - low)) + (r << (s - low))
    if total == 0:
        return zero_sum(f, product_sign, sign(f, c))
    return pack_signed(f, total, low + power)


def add(f: Format, a: int, b: int) -> Result:
    if is_nan(f, a) or is_nan(f, b):
        return NAN
    if is_infinite(f, a) or is_infinite(f, b):
        if is_infinite(f, a) and is_infinite(f, b) and a != b:
            return NAN
        return a if is_infinite(f, a) else b
    (m, p), (n, q) = unpack(f, a), unpack(f, b)
    low = min(p, q)
    total = (m << (p - low)) + (n << (q - low))
    if total == 0:
        return zero_sum(f, sign(f, a), sign(f, b))
    return pack_signed(f, total, low)


def mul(f: Format, a: int, b: int) -> Result:
    if is_nan(f, a) or is_nan(f, b):
        return NAN
    negative = sign(f, a) ^ sign(f, b)
    if is_infinite(f, a) or is_infinite(f, b):
        if is_zero(f, a) or is_zero(f, b):
            return NAN
        return f.infinity | (f.sign_bit if negative else 0)
    (m, p), (n, q) = unpack(f, a), unpack(f, b)
    return pack(f, negative, abs(m * n), p + q)


def less(f: Format, a: int, b: int) -> bool:
    """False with a not-a-number."""
    if is_nan(f, a) or is_nan(f, b):
        return False
    return order(f, a) < order(f, b)


def equal(f: Format, a: int, b: int) -> bool:
    return not is_nan(f, a) and not is_nan(f, b) and order(f, a) == order(f, b)


def order(f: Format, a: int) -> int:
    """Integers in the order of the numbers; both zeros are 0."""
    return -magnitude(f, a) if sign(f, a) else magnitude(f, a)


def floor_of(f: Format, a: int) -> int:
    m, p = unpack(f, a)
    return m << p if p >= 0 else m >> -p


def truncated(f: Format, a: int) -> int:
    m, p = unpack(f, a)
    return m << p if p >= 0 else (abs(m) >> -p) * (-1 if m < 0 else 1)


def nearest_even(f: Format, a: int) -> int:
    m, p = unpack(f, a)
    return m << p if p >= 0 else whole_nearest(m, -p)


def whole_nearest(m: int, drop: int) -> int:
    """``m / 2**drop`` to the nearest integer, ties to even."""
    kept, rest = m >> drop, m & ((1 << drop) - 1)
    return _rounded(kept, rest, (1 << drop) >> 1, "even") if drop else kept


def reciprocal(f: Format, m: int, p: int) -> int:
    """1 / (m * 2**p) with m > 0, rounded once."""
    extra = 2 * f.fraction + 4 + m.bit_length()
    quotient, rest = divmod(1 << extra, m)
    return pack(f, 0, quotient << 1 | (rest != 0), -extra - 1 - p)


def square_root(f: Format, m: int, p: int) -> int:
    if p & 1:
        m, p = m << 1, p - 1
    extra = 2 * f.fraction + 4
    root = isqrt(m << 2 * extra)
    return pack(f, 0, root << 1 | (root * root != m << 2 * extra), p // 2 - extra - 1)


def reciprocal_root(f: Format, m: int, p: int) -> int:
    if p & 1:
        m, p = m << 1, p - 1
    extra = 2 * f.fraction + 4 + m.bit_length()
    root = isqrt((1 << 2 * extra) // m)
    return pack(f, 0, root << 1 | 1 if root * root * m != 1 << 2 * extra else root << 1, -extra - 1 - p // 2)


def accepts(f: Format | None, expected: Result, actual: int) -> bool:
    if isinstance(expected, int):
        return expected == actual
    assert f is not None
    if isinstance(expected, OneOf):
        return actual in expected.values
    if isinstance(expected, Near):
        close = abs(order(f, expected.bits) - order(f, actual)) <= expected.ulps
        return close and not is_nan(f, actual)
    return is_nan(f, actual) and bool(actual & f.quiet_bit)
