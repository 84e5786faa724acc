"""Conversions between integers and floats of all widths, the 8-bit formats among them."""

from __future__ import annotations

from collections.abc import Callable

from .number_formats import (
    BF8,
    EIGHT_BIT_NAN,
    F16,
    F32,
    F64,
    FP8,
    NAN,
    Format,
    OneOf,
    Result,
    floor_of,
    is_infinite,
    is_nan,
    magnitude,
    nearest_even,
    pack,
    pack_signed,
    sign,
    truncated,
    unpack,
    whole_nearest,
)
from .operations import define, saturated, signed

_RANGES = {
    "i32": (-(1 << 31), (1 << 31) - 1),
    "u32": (0, (1 << 32) - 1),
    "i16": (-(1 << 15), (1 << 15) - 1),
    "u16": (0, (1 << 16) - 1),
    "u8": (0, 255),
}


def _to_integer(
    f: Format, kind: str, rounded: Callable[[Format, int], int] = truncated
) -> Callable[[int], int]:
    low, high = _RANGES[kind]
    mask = high - low

    def run(a: int) -> int:
        if is_nan(f, a):
            return 0
        if is_infinite(f, a):
            return (low if sign(f, a) else high) & mask
        return saturated(rounded(f, a), low, high) & mask

    return run


def converted(source: Format, target: Format, how: str = "") -> Callable[[int], Result]:
    def run(a: int) -> Result:
        if is_nan(source, a):
            return NAN
        if is_infinite(source, a):
            return (target.sign_bit if sign(source, a) else 0) | target.infinity
        m, p = unpack(source, a)
        return pack(target, sign(source, a), abs(m), p, how)

    return run


def _plus_half(f: Format, a: int) -> int:
    m, p = unpack(f, a)
    return (2 * m << p) + 1 >> 1 if p >= 0 else (m + (1 << (-p - 1))) >> -p


def _norm(a: int, low: int, high: int) -> int:
    """Of [-1, 1] or [0, 1] to an integer, to the nearest."""
    if is_nan(F32, a):
        return 0
    if is_infinite(F32, a):
        return low if sign(F32, a) else high
    m, p = unpack(F32, a)
    if p >= 0 or abs(m) >= 1 << -p:
        return 0 if m == 0 else low if m < 0 else high
    return saturated(whole_nearest(m * high, -p), low, high)


def of_eight_bits(f: Format) -> Callable[[int], Result]:
    def run(a: int) -> Result:
        return NAN if a == EIGHT_BIT_NAN else pack(F32, sign(f, a), abs(unpack(f, a)[0]), unpack(f, a)[1])

    return run


def to_eight_bits(f: Format, a: int) -> int:
    if is_nan(F32, a) or is_infinite(F32, a):
        return EIGHT_BIT_NAN
    m, p = unpack(F32, a)
    wide = Format(f.width + 4, f.fraction, f.bias)  # room for what is too large
    bits = pack(wide, 0, abs(m), p)
    if bits > f.largest:
        return EIGHT_BIT_NAN
    return bits | f.sign_bit if bits and m < 0 else bits


def _neighbours(f: Format, a: int) -> tuple[int, ...]:
    """Stochastic rounding may give either of the two numbers around."""
    if is_nan(F32, a) or is_infinite(F32, a):
        return (EIGHT_BIT_NAN,)
    m, p = unpack(F32, a)
    wide = Format(f.width + 4, f.fraction, f.bias)
    low = pack(wide, 0, abs(m), p, "zero")
    exact = m == 0 or pack(F32, 0, *_positive(wide, low)) == magnitude(F32, a)
    found = (low,) if exact else (low, low + 1)
    top = f.sign_bit if m < 0 else 0
    return tuple(EIGHT_BIT_NAN if x > f.largest else x | top if x else 0 for x in found)


def _positive(f: Format, a: int) -> tuple[int, int]:
    m, p = unpack(f, a)
    return abs(m), p


def _stochastic(f: Format) -> Callable[..., Result]:
    return lambda a, _: OneOf(_neighbours(f, a))


define(
    "vector",
    "u:f",
    {
        "v_cvt_i32_f32": _to_integer(F32, "i32"),
        "v_cvt_u32_f32": _to_integer(F32, "u32"),
        "v_cvt_flr_i32_f32": _to_integer(F32, "i32", floor_of),
        "v_cvt_rpi_i32_f32": _to_integer(F32, "i32", _plus_half),
    },
)
define("vector", "u:F", {"v_cvt_i32_f64": _to_integer(F64, "i32"), "v_cvt_u32_f64": _to_integer(F64, "u32")})
define("vector", "w:h", {"v_cvt_i16_f16": _to_integer(F16, "i16"), "v_cvt_u16_f16": _to_integer(F16, "u16")})
define("vector", "h:f", {"v_cvt_f16_f32": converted(F32, F16)})
define("vector", "f:h", {"v_cvt_f32_f16": converted(F16, F32)})
define("vector", "f:F", {"v_cvt_f32_f64": converted(F64, F32)})
define("vector", "F:f", {"v_cvt_f64_f32": converted(F32, F64)})
define("vector", "f:u", {"v_cvt_f32_u32": lambda a: pack(F32, 0, a, 0)})
define("vector", "f:u", {"v_cvt_f32_i32": lambda a: pack_signed(F32, signed(a, 32), 0)})
define("vector", "F:u", {"v_cvt_f64_u32": lambda a: pack(F64, 0, a, 0)})
define("vector", "F:u", {"v_cvt_f64_i32": lambda a: pack_signed(F64, signed(a, 32), 0)})
define("vector", "h:w", {"v_cvt_f16_u16": lambda a: pack(F16, 0, a, 0)})
define("vector", "h:w", {"v_cvt_f16_i16": lambda a: pack_signed(F16, signed(a, 16), 0)})
for _k in range(4):
    define("vector", "f:u", {f"v_cvt_f32_ubyte{_k}": lambda a, k=_k: pack(F32, 0, a >> 8 * k & 255, 0)})
_of_half = converted(F32, F16, "zero")
define("vector", "q:ff", {"v_cvt_pkrtz_f16_f32": lambda a, b: (_of_half(a), _of_half(b))}, tags={"no clamp"})
define(
    "vector",
    "k:ff",
    {
        "v_cvt_pknorm_i16_f32": lambda a, b: (
            _norm(a, -32767, 32767) & 0xFFFF,
            _norm(b, -32767, 32767) & 0xFFFF,
        ),
        "v_cvt_pknorm_u16_f32": lambda a, b: (_norm(a, 0, 65535), _norm(b, 0, 65535)),
    },
)


def _pack_byte(a: int, at: int, old: int) -> int:
    """The document only says "convert"; rounding as measured on a later GPU: to the nearest, by the mode."""
    shift = 8 * (at & 3)
    return old & ~(255 << shift) | _to_integer(F32, "u8", nearest_even)(a) << shift


define("vector", "u:fuu", {"v_cvt_pk_u8_f32": _pack_byte})

for _name, _f in (("fp8", FP8), ("bf8", BF8)):
    define(
        "vector", "f:u", {f"v_cvt_f32_{_name}": lambda a, f=_f: of_eight_bits(f)(a & 255)}, tags={"8 bits"}
    )
    define(
        "vector",
        "P:u",
        {
            f"v_cvt_pk_f32_{_name}": lambda a, f=_f: (
                of_eight_bits(f)(a & 255),
                of_eight_bits(f)(a >> 8 & 255),
            )
        },
        tags={"8 bits"},
    )
    define(
        "vector",
        "W:ff",
        {f"v_cvt_pk_{_name}_f32": lambda a, b, f=_f: to_eight_bits(f, a) | to_eight_bits(f, b) << 8},
        tags={"8 bits"},
        keeps_denormals=True,
    )
    define(
        "vector", "B:fu", {f"v_cvt_sr_{_name}_f32": _stochastic(_f)}, tags={"8 bits"}, keeps_denormals=True
    )
