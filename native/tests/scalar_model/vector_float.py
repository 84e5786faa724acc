"""Vector instructions on floats of 16, 32 and 64 bits."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from .number_formats import (
    F16,
    F32,
    F64,
    NAN,
    Format,
    Near,
    OneOf,
    Result,
    add,
    equal,
    exponent,
    floor_of,
    fma,
    is_denormal,
    is_infinite,
    is_nan,
    is_signalling,
    is_zero,
    less,
    magnitude,
    mul,
    nearest_even,
    negated,
    pack,
    pack_signed,
    quiet,
    reciprocal,
    reciprocal_root,
    sign,
    square_root,
    truncated,
    unpack,
    zero_sum,
)
from .operations import define, saturated, signed

FORMATS = {"f16": (F16, "h"), "f32": (F32, "f"), "f64": (F64, "F")}


def _signed_zero(f: Format, negative: int) -> int:
    return f.sign_bit if negative else 0


def lesser(f: Format, a: int, b: int) -> int:
    """V_MIN with IEEE mode on: a signalling not-a-number wins, a quiet one loses, -0 is below +0."""
    return _extreme(f, a, b, lowest=True)


def greater(f: Format, a: int, b: int) -> int:
    return _extreme(f, a, b, lowest=False)


def _extreme(f: Format, a: int, b: int, *, lowest: bool) -> int:
    for x in (a, b):
        if is_signalling(f, x):
            return quiet(f, x)
    if is_nan(f, a) or is_nan(f, b):
        return b if is_nan(f, a) else a
    if is_zero(f, a) and is_zero(f, b):
        return (a | b) if lowest else (a & b)
    first = less(f, a, b) if lowest else not less(f, a, b)
    return a if first else b


def _med3(f: Format, a: int, b: int, c: int) -> Result:
    """Of zeros with both signs the document's comparison and an order of all bits give different ones."""
    middle = _documented_med3(f, a, b, c)
    return OneOf((0, f.sign_bit)) if is_zero(f, middle) else middle


def _documented_med3(f: Format, a: int, b: int, c: int) -> int:
    if any(is_nan(f, x) for x in (a, b, c)):
        return lesser(f, lesser(f, a, b), c)
    highest = greater(f, greater(f, a, b), c)
    if equal(f, highest, a):
        return greater(f, b, c)
    return greater(f, a, c) if equal(f, highest, b) else greater(f, a, b)


def _whole(function: Callable[[Format, int], int]) -> Callable[[Format, int], Result]:
    """Rounding to an integer: the sign of a zero is that of the source."""

    def run(f: Format, a: int) -> Result:
        if is_nan(f, a):
            return NAN
        if is_infinite(f, a):
            return a
        value = function(f, a)
        return pack_signed(f, value, 0) if value else _signed_zero(f, sign(f, a))

    return run


def _fract(f: Format, a: int) -> Result:
    """LLVM folds min(x - floor(x), the number before 1) into it."""
    if is_nan(f, a) or is_infinite(f, a):
        return NAN
    m, p = unpack(f, a)
    fraction = m & ((1 << -p) - 1) if p < 0 else 0
    one = f.bias << f.fraction
    return min(pack(f, 0, fraction, p), one - 1) if fraction else zero_sum(f, 0, 1)


def _ldexp(f: Format, a: int, by: int) -> Result:
    if is_nan(f, a):
        return NAN
    if is_infinite(f, a):
        return a
    m, p = unpack(f, a)
    return pack(f, sign(f, a), abs(m), p + saturated(by, -5000, 5000))


def _frexp_mantissa(f: Format, a: int) -> Result:
    if is_nan(f, a):
        return NAN
    if is_infinite(f, a) or is_zero(f, a):
        return a
    m, _ = unpack(f, a)
    return pack(f, sign(f, a), abs(m), -abs(m).bit_length())


def _frexp_exponent(f: Format, a: int, bits: int) -> int:
    if is_nan(f, a) or is_infinite(f, a) or is_zero(f, a):
        return 0
    m, p = unpack(f, a)
    return (p + abs(m).bit_length()) & ((1 << bits) - 1)


def div_fixup(f: Format, quotient: int, below: int, above: int) -> Result:
    negative = sign(f, below) ^ sign(f, above)
    for x in (above, below):
        if is_nan(f, x):
            return quiet(f, x)
    invalid = f.sign_bit | f.infinity | f.quiet_bit
    if (is_zero(f, below) and is_zero(f, above)) or (is_infinite(f, below) and is_infinite(f, above)):
        return invalid
    if is_zero(f, below) or is_infinite(f, above):
        return _signed_zero(f, negative) | f.infinity
    if is_infinite(f, below) or is_zero(f, above):
        return _signed_zero(f, negative)
    lowest = {32: -150, 64: -1075}.get(f.width)
    if lowest is not None and exponent(f, above) - exponent(f, below) < lowest:
        return _signed_zero(f, negative)
    top = _signed_zero(f, negative)
    if is_nan(f, quotient):
        # It was too large on the way: docs/EMULATOR.md.
        return OneOf((top | f.infinity, top | magnitude(f, quotient)))
    return top | magnitude(f, quotient)


def _div_fmas(f: Format, power: int) -> Callable[..., Result]:
    """Undoes V_DIV_SCALE, by as much and in its direction: so RDNA3's document; CDNA3's says half."""

    def run(lane: Any, a: int, b: int, c: int) -> Result:
        result = fma(f, a, b, c)
        if not lane.vcc or not isinstance(result, int):
            return result
        by = power if exponent(f, c) > f.bias else -power
        # Rounded once, as a quotient among the denormals needs it, or before and after.
        found = (fma(f, a, b, c, by), _ldexp(f, result, by))
        return OneOf(tuple(x for x in found if isinstance(x, int)))

    return run


def _is_tiny(f: Format, above: int, below: int) -> bool:
    """Whether the quotient of two numbers, rounded, is a denormal."""
    if any(is_nan(f, x) or is_infinite(f, x) for x in (above, below)):
        return False
    (m, p), (n, q) = unpack(f, above), unpack(f, below)
    extra = f.fraction + 4 + abs(n).bit_length()
    quotient, rest = divmod(abs(m) << extra, abs(n))
    return is_denormal(f, pack(f, 0, quotient << 1 | (rest != 0), p - q - extra - 1))


def _div_scale(f: Format, near_maximum: int, step: int) -> Callable[..., tuple[Result, int]]:
    def run(a: int, below: int, above: int) -> tuple[Result, int]:
        if is_zero(f, above) or is_zero(f, below):
            return NAN, 0
        if is_nan(f, a):
            near = exponent(f, above) - exponent(f, below) >= near_maximum
            return OneOf((a, quiet(f, a))), int(near)
        tiny_reciprocal = _is_tiny(f, f.bias << f.fraction, below)
        tiny_quotient = _is_tiny(f, above, below)
        is_below, is_above = equal(f, a, below), equal(f, a, above)
        if exponent(f, above) - exponent(f, below) >= near_maximum:
            return (_ldexp(f, a, step) if is_below else a), 1
        if is_denormal(f, below):
            return _ldexp(f, a, step), 0
        if tiny_reciprocal and tiny_quotient:
            # The document scales up, which would overflow: docs/EMULATOR.md.
            return (_ldexp(f, a, -step) if is_below else a), 1
        if tiny_reciprocal:
            return _ldexp(f, a, -step), 0
        if tiny_quotient:
            return (_ldexp(f, a, step) if is_above else a), 1
        if exponent(f, above) <= f.fraction + (f is F64):
            return _ldexp(f, a, step), 0
        return a, 0

    return run


def _approximate(function: Callable[[Format, int, int], int]) -> Callable[[Format, int], Result]:
    """Of a number above zero; ``rcp`` handles signs itself."""

    def run(f: Format, a: int) -> Result:
        return Near(function(f, *unpack(f, a)))

    return run


def _rcp(f: Format, a: int) -> Result:
    top = _signed_zero(f, sign(f, a))
    if is_nan(f, a):
        return NAN
    if is_infinite(f, a):
        return top
    if is_zero(f, a):
        return top | f.infinity
    m, p = unpack(f, a)
    return Near(top | reciprocal(f, abs(m), p))


def _of_positive(
    function: Callable[[Format, int], Result],
    at_zero: Callable[[Format, int], int],
    at_infinity: Callable[[Format], int],
) -> Callable[[Format, int], Result]:
    def run(f: Format, a: int) -> Result:
        if is_zero(f, a):
            return at_zero(f, a)
        if is_nan(f, a) or sign(f, a):
            return NAN
        return at_infinity(f) if is_infinite(f, a) else function(f, a)

    return run


_sqrt = _of_positive(_approximate(square_root), lambda f, a: a, lambda f: f.infinity)
_rsq = _of_positive(_approximate(reciprocal_root), lambda f, a: a | f.infinity, lambda f: 0)


def to_python(f: Format, a: int) -> float:
    """Exact, of a finite number."""
    m, p = unpack(f, a)
    return math.copysign(math.ldexp(abs(m), p), -1 if sign(f, a) else 1)


def from_python(f: Format, value: float) -> int:
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return pack(f, sign(F64, bits), *_whole_and_power(bits))


def _whole_and_power(bits: int) -> tuple[int, int]:
    m, p = unpack(F64, bits)
    return abs(m), p


_log = _of_positive(
    lambda f, a: Near(from_python(f, math.log2(to_python(f, a)))),
    lambda f, a: f.sign_bit | f.infinity,
    lambda f: f.infinity,
)


def _exp(f: Format, a: int) -> Result:
    if is_nan(f, a):
        return NAN
    if is_infinite(f, a):
        return 0 if sign(f, a) else f.infinity
    value = to_python(f, a)
    if abs(value) > 500:
        return 0 if value < 0 else f.infinity
    return Near(from_python(f, 2.0**value))


def _turns(function: Callable[[float], float], outside: float) -> Callable[[Format, int], Result]:
    """Sine and cosine of turns; beyond 256 of them they are those of 0."""

    def run(f: Format, a: int) -> Result:
        if is_nan(f, a) or is_infinite(f, a):
            return NAN
        value = to_python(f, a)
        if abs(value) > 256:
            return from_python(f, outside)
        part = value - round(value * 4) / 4
        quarter = round(value * 4) % 4
        sine, cosine = math.sin(2 * math.pi * part), math.cos(2 * math.pi * part)
        turned = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][quarter]
        return Near(from_python(f, turned[function is math.cos]), 2)

    return run


def _legacy_mul(a: int, b: int) -> Result:
    return 0 if is_zero(F32, a) or is_zero(F32, b) else mul(F32, a, b)


def _minus(f: Format, a: int) -> int:
    return negated(f, a)


for _suffix, (_f, _t) in FORMATS.items():
    _three = _t.upper() if _t == "h" else _t
    define(
        "vector",
        f"{_t}:{_t}{_t}",
        {
            f"v_add_{_suffix}": lambda a, b, f=_f: add(f, a, b),
            f"v_mul_{_suffix}": lambda a, b, f=_f: mul(f, a, b),
            f"v_min_{_suffix}": lambda a, b, f=_f: lesser(f, a, b),
            f"v_max_{_suffix}": lambda a, b, f=_f: greater(f, a, b),
        },
    )
    define("vector", f"{_three}:{_t}{_t}{_t}", {f"v_fma_{_suffix}": lambda a, b, c, f=_f: fma(f, a, b, c)})
    define(
        "vector",
        f"{_three}:{_t}{_t}{_t}",
        {f"v_div_fixup_{_suffix}": lambda a, b, c, f=_f: div_fixup(f, a, b, c)},
        keeps_denormals=True,
        tags={"no clamp"},
    )
    define(
        "vector",
        f"{_t}:{_t}",
        {
            f"v_trunc_{_suffix}": lambda a, f=_f: _whole(truncated)(f, a),
            f"v_floor_{_suffix}": lambda a, f=_f: _whole(floor_of)(f, a),
            f"v_ceil_{_suffix}": lambda a, f=_f: _whole(lambda g, x: -floor_of(g, negated(g, x)))(f, a),
            f"v_rndne_{_suffix}": lambda a, f=_f: _whole(nearest_even)(f, a),
            f"v_fract_{_suffix}": lambda a, f=_f: _fract(f, a),
            f"v_frexp_mant_{_suffix}": lambda a, f=_f: _frexp_mantissa(f, a),
        },
    )
    define(
        "vector",
        f"{_t}:{_t}",
        {
            f"v_rcp_{_suffix}": lambda a, f=_f: _rcp(f, a),
            f"v_sqrt_{_suffix}": lambda a, f=_f: _sqrt(f, a),
            f"v_rsq_{_suffix}": lambda a, f=_f: _rsq(f, a),
        },
        tags={"approximate"},
    )
    if _suffix != "f64":
        define("vector", f"{_t}:{_t}{_t}", {f"v_sub_{_suffix}": lambda a, b, f=_f: add(f, a, negated(f, b))})
        define(
            "vector", f"{_t}:{_t}{_t}", {f"v_subrev_{_suffix}": lambda a, b, f=_f: add(f, b, negated(f, a))}
        )
        define(
            "vector",
            f"{_three}:{_t}{_t}{_t}",
            {
                f"v_min3_{_suffix}": lambda a, b, c, f=_f: lesser(f, lesser(f, a, b), c),
                f"v_max3_{_suffix}": lambda a, b, c, f=_f: greater(f, greater(f, a, b), c),
                f"v_med3_{_suffix}": lambda a, b, c, f=_f: _med3(f, a, b, c),
            },
        )
        define(
            "vector",
            f"{_t}:{_t}",
            {
                f"v_exp_{_suffix}": lambda a, f=_f: _exp(f, a),
                f"v_log_{_suffix}": lambda a, f=_f: _log(f, a),
                f"v_sin_{_suffix}": lambda a, f=_f: _turns(math.sin, 0.0)(f, a),
                f"v_cos_{_suffix}": lambda a, f=_f: _turns(math.cos, 1.0)(f, a),
            },
            tags={"approximate"},
        )
define("vector", "f:f", {"v_exp_legacy_f32": lambda a: _exp(F32, a)}, tags={"approximate"})
define("vector", "f:f", {"v_log_legacy_f32": lambda a: _log(F32, a)}, tags={"approximate"})
define("vector", "f:f", {"v_rcp_iflag_f32": lambda a: _rcp(F32, a)}, tags={"approximate"})
define("vector", "f:ff", {"v_mul_legacy_f32": _legacy_mul})
define("vector", "f:ff", {"v_fmac_f32": lambda x, a, b: fma(F32, a, b, x.old)}, wants="lane")
define("vector", "F:FF", {"v_fmac_f64": lambda x, a, b: fma(F64, a, b, x.old)}, wants="lane")
define("vector", "f:fff", {"v_fmaak_f32": lambda a, b, c: fma(F32, a, b, c)}, draw=("", "", "literal"))
define("vector", "f:fff", {"v_fmamk_f32": lambda a, b, c: fma(F32, a, b, c)}, draw=("", "literal", ""))
define("vector", "h:hw", {"v_ldexp_f16": lambda a, b: _ldexp(F16, a, signed(b, 16))}, draw=("", "power"))
define("vector", "f:fu", {"v_ldexp_f32": lambda a, b: _ldexp(F32, a, signed(b, 32))}, draw=("", "power"))
define("vector", "F:Fu", {"v_ldexp_f64": lambda a, b: _ldexp(F64, a, signed(b, 32))}, draw=("", "power"))
define("vector", "w:h", {"v_frexp_exp_i16_f16": lambda a: _frexp_exponent(F16, a, 16)})
define("vector", "u:f", {"v_frexp_exp_i32_f32": lambda a: _frexp_exponent(F32, a, 32)})
define("vector", "u:F", {"v_frexp_exp_i32_f64": lambda a: _frexp_exponent(F64, a, 32)})
define("vector", "f:fff", {"v_div_fmas_f32": _div_fmas(F32, 64)}, wants="lane")
define("vector", "F:FFF", {"v_div_fmas_f64": _div_fmas(F64, 128)}, wants="lane")
define(
    "vector",
    "fb:fff",
    {"v_div_scale_f32": _div_scale(F32, 96, 64)},
    draw=("same", "", ""),
    tags={"plain"},
    keeps_denormals=True,
)
define(
    "vector",
    "Fb:FFF",
    {"v_div_scale_f64": _div_scale(F64, 768, 128)},
    draw=("same", "", ""),
    tags={"plain"},
    keeps_denormals=True,
)

#: Operations on one half, which the packed instructions do twice.
OF_HALVES: dict[str, Callable[..., Result]] = {
    "add_f16": lambda a, b: add(F16, a, b),
    "mul_f16": lambda a, b: mul(F16, a, b),
    "min_f16": lambda a, b: lesser(F16, a, b),
    "max_f16": lambda a, b: greater(F16, a, b),
    "fma_f16": lambda a, b, c: fma(F16, a, b, c),
}
