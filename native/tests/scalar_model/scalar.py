"""Scalar instructions: SOP1, SOP2, SOPK, SOPC. A function gives the result, and with ``scc`` the flag."""

from __future__ import annotations

from collections.abc import Callable

from .operations import define, signed

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def _nonzero(function: Callable[..., int]) -> Callable[..., tuple[int, int]]:
    def run(*sources: int) -> tuple[int, int]:
        result = function(*sources)
        return result, int(result != 0)

    return run


def _bits(functions: dict[str, Callable[..., int]]) -> None:
    for name, function in functions.items():
        for bits, letter in ((32, "s"), (64, "S")):
            mask = (1 << bits) - 1
            masked = _nonzero(lambda *s, f=function, m=mask: f(*s) & m)
            count = function.__code__.co_argcount
            define(
                "scalar",
                f"{letter}:{'uU'[bits == 64] * count}",
                {f"{name}_b{bits}": masked},
                wants="sets scc",
            )


_bits(
    {
        "s_and": lambda a, b: a & b,
        "s_or": lambda a, b: a | b,
        "s_xor": lambda a, b: a ^ b,
        "s_andn2": lambda a, b: a & ~b,
        "s_orn2": lambda a, b: a | ~b,
        "s_nand": lambda a, b: ~(a & b),
        "s_nor": lambda a, b: ~(a | b),
        "s_xnor": lambda a, b: ~(a ^ b),
        "s_not": lambda a: ~a,
    }
)


def _add(a: int, b: int, carry: int = 0) -> tuple[int, int]:
    return (a + b + carry) & M32, int(a + b + carry > M32)


def _sub(a: int, b: int, borrow: int = 0) -> tuple[int, int]:
    return (a - b - borrow) & M32, int(b + borrow > a)


def _overflow(total: int) -> tuple[int, int]:
    return total & M32, int(total != signed(total, 32))


def _absdiff(a: int, b: int) -> int:
    difference = signed(signed(a, 32) - signed(b, 32), 32)
    return -difference & M32 if difference < 0 else difference


def _bfe(value: int, how: int, bits: int) -> int:
    return value >> (how & (bits - 1)) & ((1 << (how >> 16 & 127)) - 1) & ((1 << bits) - 1)


def _signed_bfe(value: int, how: int, bits: int) -> int:
    width = how >> 16 & 127
    if width == 0:
        return 0
    shifted = signed(value, bits) >> (how & (bits - 1))
    return (shifted if width >= bits else signed(shifted, width)) & ((1 << bits) - 1)


define(
    "scalar",
    "s:uu",
    {
        "s_add_u32": _add,
        "s_sub_u32": _sub,
        "s_add_i32": lambda a, b: _overflow(signed(a, 32) + signed(b, 32)),
        "s_sub_i32": lambda a, b: _overflow(signed(a, 32) - signed(b, 32)),
        "s_min_i32": lambda a, b: (a, 1) if signed(a, 32) < signed(b, 32) else (b, 0),
        "s_min_u32": lambda a, b: (a, 1) if a < b else (b, 0),
        "s_max_i32": lambda a, b: (a, 1) if signed(a, 32) >= signed(b, 32) else (b, 0),
        "s_max_u32": lambda a, b: (a, 1) if a >= b else (b, 0),
        "s_absdiff_i32": _nonzero(_absdiff),
        "s_bfe_u32": _nonzero(lambda a, b: _bfe(a, b, 32)),
        "s_bfe_i32": _nonzero(lambda a, b: _signed_bfe(a, b, 32)),
        "s_lshl_b32": _nonzero(lambda a, b: a << (b & 31) & M32),
        "s_lshr_b32": _nonzero(lambda a, b: a >> (b & 31)),
        "s_ashr_i32": _nonzero(lambda a, b: signed(a, 32) >> (b & 31) & M32),
        "s_lshl1_add_u32": lambda a, b: _add(a << 1, b),
        "s_lshl2_add_u32": lambda a, b: _add(a << 2, b),
        "s_lshl3_add_u32": lambda a, b: _add(a << 3, b),
        "s_lshl4_add_u32": lambda a, b: _add(a << 4, b),
    },
    wants="sets scc",
)
define(
    "scalar",
    "S:Uu",
    {
        "s_bfe_u64": _nonzero(lambda a, b: _bfe(a, b, 64)),
        "s_bfe_i64": _nonzero(lambda a, b: _signed_bfe(a, b, 64)),
        "s_lshl_b64": _nonzero(lambda a, b: a << (b & 63) & M64),
        "s_lshr_b64": _nonzero(lambda a, b: a >> (b & 63)),
        "s_ashr_i64": _nonzero(lambda a, b: signed(a, 64) >> (b & 63) & M64),
    },
    wants="sets scc",
)
define("scalar", "s:uu", {"s_addc_u32": lambda w, a, b: _add(a, b, w.scc)}, wants="wave, sets scc")
define("scalar", "s:uu", {"s_subb_u32": lambda w, a, b: _sub(a, b, w.scc)}, wants="wave, sets scc")
define("scalar", "s:uu", {"s_cselect_b32": lambda w, a, b: a if w.scc else b}, wants="wave")
define("scalar", "S:UU", {"s_cselect_b64": lambda w, a, b: a if w.scc else b}, wants="wave")
define(
    "scalar",
    "s:uu",
    {
        "s_mul_i32": lambda a, b: a * b & M32,
        "s_mul_hi_u32": lambda a, b: a * b >> 32,
        "s_mul_hi_i32": lambda a, b: signed(a, 32) * signed(b, 32) >> 32 & M32,
        "s_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31) & M32,
        "s_pack_ll_b32_b16": lambda a, b: a & 0xFFFF | (b & 0xFFFF) << 16,
        "s_pack_lh_b32_b16": lambda a, b: a & 0xFFFF | b >> 16 << 16,
        "s_pack_hh_b32_b16": lambda a, b: a >> 16 | b >> 16 << 16,
    },
)
define("scalar", "S:uu", {"s_bfm_b64": lambda a, b: ((1 << (a & 63)) - 1) << (b & 63) & M64})


def _reversed(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _first(value: int) -> int:
    """The lowest bit that is set."""
    return (value & -value).bit_length() - 1 if value else M32


def _leading(value: int, bits: int) -> int:
    return bits - value.bit_length() if value else M32


def _leading_like_sign(value: int, bits: int) -> int:
    if value >> (bits - 1):
        value = ~value & ((1 << bits) - 1)
    return bits - value.bit_length() if value else M32


def _quads(value: int, bits: int, width: int) -> int:
    """A bit for each group of four that has one: once (``width`` 1) or in all four places."""
    ones = (1 << width) - 1
    return sum(ones << (k * width) for k in range(bits // 4) if value >> 4 * k & 15)


for _n, _u in ((32, "u"), (64, "U")):
    _s, _mask = "sS"[_n == 64], (1 << _n) - 1
    define(
        "scalar",
        f"{_s}:{_u}",
        {f"s_mov_b{_n}": lambda a: a, f"s_brev_b{_n}": lambda a, n=_n: _reversed(a, n)},
    )
    define("scalar", f"{_s}:{_u}", {f"s_cmov_b{_n}": lambda w, a: a if w.scc else w.old}, wants="wave")
    define(
        "scalar",
        f"s:{_u}",
        {
            f"s_bcnt0_i32_b{_n}": _nonzero(lambda a, n=_n: n - f"{a:b}".count("1")),
            f"s_bcnt1_i32_b{_n}": _nonzero(lambda a: f"{a:b}".count("1")),
        },
        wants="sets scc",
    )
    define(
        "scalar",
        f"s:{_u}",
        {
            f"s_ff0_i32_b{_n}": lambda a, m=_mask: _first(~a & m),
            f"s_ff1_i32_b{_n}": _first,
            f"s_flbit_i32_b{_n}": lambda a, n=_n: _leading(a, n),
            "s_flbit_i32" + ("_i64" if _n == 64 else ""): lambda a, n=_n: _leading_like_sign(a, n),
        },
    )
    define(
        "scalar",
        f"{_s}:{_u}",
        {
            f"s_wqm_b{_n}": _nonzero(lambda a, n=_n: _quads(a, n, 4)),
            f"s_quadmask_b{_n}": _nonzero(lambda a, n=_n: _quads(a, n, 1)),
        },
        wants="sets scc",
    )
    define(
        "scalar",
        f"{_s}:u",
        {
            f"s_bitset0_b{_n}": lambda w, a, n=_n: w.old & ~(1 << (a & (n - 1))),
            f"s_bitset1_b{_n}": lambda w, a, n=_n: w.old | 1 << (a & (n - 1)),
        },
        wants="wave",
    )
    define(
        "scalar",
        f":{_u}u",
        {
            f"s_bitcmp0_b{_n}": lambda a, b, n=_n: int(not a >> (b & (n - 1)) & 1),
            f"s_bitcmp1_b{_n}": lambda a, b, n=_n: a >> (b & (n - 1)) & 1,
        },
        wants="sets scc",
    )
define("scalar", "s:u", {"s_abs_i32": _nonzero(lambda a: abs(signed(a, 32)) & M32)}, wants="sets scc")
define(
    "scalar",
    "s:u",
    {"s_sext_i32_i8": lambda a: signed(a, 8) & M32, "s_sext_i32_i16": lambda a: signed(a, 16) & M32},
)
define(
    "scalar",
    "S:u",
    {"s_bitreplicate_b64_b32": lambda a: sum(3 << 2 * k for k in range(32) if a >> k & 1)},
)

_WITH_EXEC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, x: a & x,
    "or": lambda a, x: a | x,
    "xor": lambda a, x: a ^ x,
    "andn2": lambda a, x: a & ~x,
    "orn2": lambda a, x: a | ~x,
    "nand": lambda a, x: ~(a & x),
    "nor": lambda a, x: ~(a | x),
    "xnor": lambda a, x: ~(a ^ x),
    "andn1": lambda a, x: ~a & x,
    "orn1": lambda a, x: ~a | x,
}


def _saves(function: Callable[[int, int], int], gives_new: bool) -> Callable[..., tuple[int, int]]:
    def run(wave, a):  # type: ignore[no-untyped-def]
        before, wave.exec = wave.exec, function(a, wave.exec) & M64
        return (wave.exec if gives_new else before), int(wave.exec != 0)

    return run


for _name, _function in _WITH_EXEC.items():
    _wants = "wave, sets scc, writes exec"
    define("scalar", "S:U", {f"s_{_name}_saveexec_b64": _saves(_function, gives_new=False)}, wants=_wants)
    if _name in ("andn1", "andn2"):
        define("scalar", "S:U", {f"s_{_name}_wrexec_b64": _saves(_function, gives_new=True)}, wants=_wants)

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
for _name, _c in _COMPARISONS.items():
    _as_signed = lambda a, b, c=_c: int(c(signed(a, 32), signed(b, 32)))  # noqa: E731
    _as_unsigned = lambda a, b, c=_c: int(c(a, b))  # noqa: E731
    define(
        "scalar",
        ":uu",
        {f"s_cmp_{_name}_i32": _as_signed, f"s_cmp_{_name}_u32": _as_unsigned},
        wants="sets scc",
    )
    # The 16-bit constant is sign extended by the one, zero extended by the other.
    define("scalar", ":ui", {f"s_cmpk_{_name}_i32": _as_signed}, wants="sets scc")
    define("scalar", ":uj", {f"s_cmpk_{_name}_u32": _as_unsigned}, wants="sets scc")
    if _name in ("eq", "lg"):
        define("scalar", ":UU", {f"s_cmp_{_name}_u64": _as_unsigned}, wants="sets scc")
define("scalar", "s:i", {"s_movk_i32": lambda a: a})
define("scalar", "s:i", {"s_cmovk_i32": lambda w, a: a if w.scc else w.old}, wants="wave")
define("scalar", "s:i", {"s_mulk_i32": lambda w, a: w.old * a & M32}, wants="wave")
define(
    "scalar",
    "s:i",
    {"s_addk_i32": lambda w, a: _overflow(signed(w.old, 32) + signed(a, 32))},
    wants="wave, sets scc",
)
