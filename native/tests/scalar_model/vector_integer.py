"""Vector instructions on integers and bits of 16, 24, 32 and 64 bits."""

from __future__ import annotations

from collections.abc import Callable

from .operations import define, saturated, signed

M16, M24, M32, M64 = (1 << 16) - 1, (1 << 24) - 1, (1 << 32) - 1, (1 << 64) - 1


def _s(value: int) -> int:
    return signed(value, 32)


def _med3(a: int, b: int, c: int, key: Callable[[int], int]) -> int:
    return sorted((a, b, c), key=key)[1]


def _bfe(value: int, at: int, width: int) -> int:
    return value >> (at & 31) & ((1 << (width & 31)) - 1)


def _signed_bfe(value: int, at: int, width: int) -> int:
    field = _bfe(_s(value) & M64, at, width)
    return signed(field, width & 31) & M32 if width & 31 else 0


def _bytes(value: int) -> list[int]:
    return [value >> 8 * k & 255 for k in range(4)]


def _sad8(a: int, b: int) -> int:
    return sum(abs(x - y) for x, y in zip(_bytes(a), _bytes(b), strict=True))


def _perm(a: int, b: int, select: int) -> int:
    source = a << 32 | b
    result = 0
    for k, s in enumerate(_bytes(select)):
        if s >= 13:
            byte = 255
        elif s == 12:
            byte = 0
        elif s >= 8:
            byte = 255 * (source >> (16 * (s - 8) + 15) & 1)
        else:
            byte = source >> 8 * s & 255
        result |= byte << 8 * k
    return result


def _lerp(a: int, b: int, c: int) -> int:
    rounds = zip(_bytes(a), _bytes(b), _bytes(c), strict=True)
    return sum((x + y + (z & 1)) >> 1 << 8 * k for k, (x, y, z) in enumerate(rounds))


def _leading(value: int) -> int:
    return 32 - value.bit_length() if value else M32


def _low24(value: int) -> int:
    return signed(value, 24)


define(
    "vector",
    "u:uu",
    {
        "v_add_u32": lambda a, b: (a + b) & M32,
        "v_sub_u32": lambda a, b: (a - b) & M32,
        "v_subrev_u32": lambda a, b: (b - a) & M32,
        "v_add_u32 clamp": lambda a, b: min(a + b, M32),
        "v_sub_u32 clamp": lambda a, b: max(a - b, 0),
        "v_subrev_u32 clamp": lambda a, b: max(b - a, 0),
        "v_add_i32": lambda a, b: (a + b) & M32,
        "v_sub_i32": lambda a, b: (a - b) & M32,
        "v_add_i32 clamp": lambda a, b: saturated(_s(a) + _s(b), -(1 << 31), (1 << 31) - 1) & M32,
        "v_sub_i32 clamp": lambda a, b: saturated(_s(a) - _s(b), -(1 << 31), (1 << 31) - 1) & M32,
        "v_and_b32": lambda a, b: a & b,
        "v_or_b32": lambda a, b: a | b,
        "v_xor_b32": lambda a, b: a ^ b,
        "v_xnor_b32": lambda a, b: ~(a ^ b) & M32,
        "v_lshlrev_b32": lambda a, b: b << (a & 31) & M32,
        "v_lshrrev_b32": lambda a, b: b >> (a & 31),
        "v_ashrrev_i32": lambda a, b: _s(b) >> (a & 31) & M32,
        "v_min_i32": lambda a, b: min(a, b, key=_s),
        "v_max_i32": lambda a, b: max(a, b, key=_s),
        "v_min_u32": min,
        "v_max_u32": max,
        "v_mul_i32_i24": lambda a, b: _low24(a) * _low24(b) & M32,
        "v_mul_hi_i32_i24": lambda a, b: _low24(a) * _low24(b) >> 32 & M32,
        "v_mul_u32_u24": lambda a, b: (a & M24) * (b & M24) & M32,
        "v_mul_hi_u32_u24": lambda a, b: (a & M24) * (b & M24) >> 32,
        "v_mul_lo_u32": lambda a, b: a * b & M32,
        "v_mul_hi_u32": lambda a, b: a * b >> 32,
        "v_mul_hi_i32": lambda a, b: _s(a) * _s(b) >> 32 & M32,
        "v_bcnt_u32_b32": lambda a, b: (f"{a:b}".count("1") + b) & M32,
        "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31) & M32,
        "v_cvt_pk_u16_u32": lambda a, b: min(a, M16) | min(b, M16) << 16,
        "v_cvt_pk_i16_i32": lambda a, b: (
            (saturated(_s(a), -0x8000, 0x7FFF) & M16) | (saturated(_s(b), -0x8000, 0x7FFF) & M16) << 16
        ),
    },
)
define(
    "vector",
    "u:uuu",
    {
        "v_add3_u32": lambda a, b, c: (a + b + c) & M32,
        "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31) & M32,
        "v_lshl_add_u32": lambda a, b, c: ((a << (b & 31)) + c) & M32,
        "v_lshl_or_b32": lambda a, b, c: (a << (b & 31) | c) & M32,
        "v_and_or_b32": lambda a, b, c: a & b | c,
        "v_or3_b32": lambda a, b, c: a | b | c,
        "v_xad_u32": lambda a, b, c: ((a ^ b) + c) & M32,
        "v_bfe_u32": _bfe,
        "v_bfe_i32": _signed_bfe,
        "v_bfi_b32": lambda a, b, c: a & b | ~a & c & M32,
        "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31) & M32,
        "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3) & M32,
        "v_perm_b32": _perm,
        "v_lerp_u8": _lerp,
        "v_sad_u8": lambda a, b, c: (_sad8(a, b) + c) & M32,
        "v_sad_hi_u8": lambda a, b, c: ((_sad8(a, b) << 16) + c) & M32,
        "v_sad_u16": lambda a, b, c: (abs((a & M16) - (b & M16)) + abs((a >> 16) - (b >> 16)) + c) & M32,
        "v_sad_u32": lambda a, b, c: (abs(a - b) + c) & M32,
        "v_mad_i32_i24": lambda a, b, c: (_low24(a) * _low24(b) + c) & M32,
        "v_mad_u32_u24": lambda a, b, c: ((a & M24) * (b & M24) + c) & M32,
        "v_min3_i32": lambda a, b, c: min(a, b, c, key=_s),
        "v_max3_i32": lambda a, b, c: max(a, b, c, key=_s),
        "v_med3_i32": lambda a, b, c: _med3(a, b, c, _s),
        "v_min3_u32": min,
        "v_max3_u32": max,
        "v_med3_u32": lambda a, b, c: _med3(a, b, c, int),
    },
)
define(
    "vector",
    "u:u",
    {
        "v_mov_b32": lambda a: a,
        "v_not_b32": lambda a: ~a & M32,
        "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
        "v_ffbh_u32": _leading,
        "v_ffbl_b32": lambda a: (a & -a).bit_length() - 1 if a else M32,
        "v_ffbh_i32": lambda a: _leading(~a & M32 if a >> 31 else a),
        "v_sat_pk_u8_i16": lambda a: (
            saturated(signed(a, 16), 0, 255) | saturated(signed(a >> 16, 16), 0, 255) << 8
        ),
    },
)
define("vector", "U:U", {"v_mov_b64": lambda a: a})
define("vector", "U:uU", {"v_lshlrev_b64": lambda a, b: b << (a & 63) & M64})
define("vector", "U:uU", {"v_lshrrev_b64": lambda a, b: b >> (a & 63)})
define("vector", "U:uU", {"v_ashrrev_i64": lambda a, b: signed(b, 64) >> (a & 63) & M64})
define("vector", "U:UuU", {"v_lshl_add_u64": lambda a, b, c: ((a << (b & 7)) + c) & M64})

# A carry goes in and out by a bit of a scalar pair.
_CARRY: dict[str, Callable[..., tuple[int, int]]] = {
    "v_add_co_u32": lambda a, b: ((a + b) & M32, int(a + b > M32)),
    "v_sub_co_u32": lambda a, b: ((a - b) & M32, int(b > a)),
    "v_subrev_co_u32": lambda a, b: ((b - a) & M32, int(a > b)),
}
_CARRY_IN: dict[str, Callable[..., tuple[int, int]]] = {
    "v_addc_co_u32": lambda a, b, c: ((a + b + c) & M32, int(a + b + c > M32)),
    "v_subb_co_u32": lambda a, b, c: ((a - b - c) & M32, int(b + c > a)),
    "v_subbrev_co_u32": lambda a, b, c: ((b - a - c) & M32, int(a + c > b)),
}
define("vector", "ub:uu", _CARRY)
define("vector", "ub:uub", _CARRY_IN)
define(
    "vector",
    "Ub:uuU",
    {
        "v_mad_u64_u32": lambda a, b, c: ((a * b + c) & M64, (a * b + c) >> 64 & 1),
        "v_mad_i64_i32": lambda a, b, c: (
            (_s(a) * _s(b) + signed(c, 64)) & M64,
            (_s(a) * _s(b) + signed(c, 64)) >> 64 & 1,
        ),
    },
)
define("vector", "u:uub", {"v_cndmask_b32": lambda a, b, c: b if c else a}, tags={"sign of bits"})


def _s16(value: int) -> int:
    return signed(value, 16)


def _clamp16(value: int) -> int:
    return saturated(value, -0x8000, 0x7FFF) & M16


#: Operations on one 16-bit integer, which the packed instructions do twice.
OF_16: dict[str, Callable[..., int]] = {
    "add_u16": lambda a, b: (a + b) & M16,
    "sub_u16": lambda a, b: (a - b) & M16,
    "add_u16 clamp": lambda a, b: min(a + b, M16),
    "sub_u16 clamp": lambda a, b: max(a - b, 0),
    "add_i16": lambda a, b: (a + b) & M16,
    "sub_i16": lambda a, b: (a - b) & M16,
    "add_i16 clamp": lambda a, b: _clamp16(_s16(a) + _s16(b)),
    "sub_i16 clamp": lambda a, b: _clamp16(_s16(a) - _s16(b)),
    "mul_lo_u16": lambda a, b: a * b & M16,
    "lshlrev_b16": lambda a, b: b << (a & 15) & M16,
    "lshrrev_b16": lambda a, b: b >> (a & 15),
    "ashrrev_i16": lambda a, b: _s16(b) >> (a & 15) & M16,
    "min_i16": lambda a, b: min(a, b, key=_s16),
    "max_i16": lambda a, b: max(a, b, key=_s16),
    "min_u16": min,
    "max_u16": max,
}
_KEEP_THE_OTHER_HALF = ("add_i16", "sub_i16", "add_i16 clamp", "sub_i16 clamp")
for _name, _function in OF_16.items():
    define("vector", "W:ww" if _name in _KEEP_THE_OTHER_HALF else "w:ww", {f"v_{_name}": _function})
define("vector", "w:ww", {"v_subrev_u16": lambda a, b: (b - a) & M16})
_MAD16: dict[str, Callable[..., int]] = {
    "mad_u16": lambda a, b, c: (a * b + c) & M16,
    "mad_i16": lambda a, b, c: (a * b + c) & M16,
}
define("vector", "W:www", {f"v_{name}": function for name, function in _MAD16.items()})
define("vector", "w:www", {f"v_mad_legacy_{name[4:]}": function for name, function in _MAD16.items()})
define(
    "vector",
    "W:www",
    {
        "v_min3_i16": lambda a, b, c: min(a, b, c, key=_s16),
        "v_max3_i16": lambda a, b, c: max(a, b, c, key=_s16),
        "v_med3_i16": lambda a, b, c: _med3(a, b, c, _s16),
        "v_min3_u16": min,
        "v_max3_u16": max,
        "v_med3_u16": lambda a, b, c: _med3(a, b, c, int),
    },
)
define(
    "vector",
    "u:wwu",
    {
        "v_mad_u32_u16": lambda a, b, c: (a * b + c) & M32,
        "v_mad_i32_i16": lambda a, b, c: (_s16(a) * _s16(b) + c) & M32,
    },
)
