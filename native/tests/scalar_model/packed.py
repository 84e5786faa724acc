"""VOP3P: two halves, two 16-bit integers or two floats at a time; dot products; mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .conversions import converted
from .number_formats import F16, F32, NAN, OneOf, Result, add, fma, is_nan, mul, quiet
from .operations import define, signed
from .vector_float import OF_HALVES
from .vector_integer import OF_16

M16, M32 = (1 << 16) - 1, (1 << 32) - 1

for _name, _function in OF_16.items():
    define("packed", "k:kk", {f"v_pk_{_name}": _function})
define(
    "packed",
    "k:kkk",
    {
        "v_pk_mad_i16": lambda a, b, c: (a * b + c) & M16,
        "v_pk_mad_u16": lambda a, b, c: (a * b + c) & M16,
    },
)
for _name, _half in OF_HALVES.items():
    define("packed", "q:qq" + "q" * (_name == "fma_f16"), {f"v_pk_{_name}": _half})
define("packed", "P:PP", {"v_pk_add_f32": lambda a, b: add(F32, a, b)})
define("packed", "P:PP", {"v_pk_mul_f32": lambda a, b: mul(F32, a, b)})
define("packed", "P:PPP", {"v_pk_fma_f32": lambda a, b, c: fma(F32, a, b, c)})


def _parts(value: int, bits: int, is_signed: bool) -> list[int]:
    fields = [value >> k & ((1 << bits) - 1) for k in range(0, 32, bits)]
    return [signed(x, bits) for x in fields] if is_signed else fields


def _dot(bits: int, is_signed: bool) -> Callable[[int, int, int], int]:
    def run(a: int, b: int, c: int) -> int:
        factors = zip(_parts(a, bits, is_signed), _parts(b, bits, is_signed), strict=True)
        return (sum(x * y for x, y in factors) + c) & M32

    return run


for _n, _bits in ((2, 16), (4, 8), (8, 4)):
    for _letter in "iu":
        _dots = _dot(_bits, _letter == "i")
        define("dot", "u:uuu", {f"v_dot{_n}_{_letter}32_{_letter}{_bits}": _dots})
        if _letter == "i":
            _c = lambda x, a, b, d=_dots: d(a, b, x.old)  # noqa: E731
            define("vector", "u:uu", {f"v_dot{_n}c_i32_i{_bits}": _c}, wants="lane")


def _dot_halves(a: int, b: int, c: int) -> Result:
    """Two fused steps, high half first: docs/EMULATOR.md says that the order is not public."""
    total: Result = c
    for shift in (16, 0):
        x, y = (converted(F16, F32)(v >> shift & M16) for v in (a, b))
        if not (isinstance(x, int) and isinstance(y, int) and isinstance(total, int)):
            return NAN
        total = fma(F32, x, y, total)
    return total


define("dot", "f:uuf", {"v_dot2_f32_f16": _dot_halves}, draw=("halves", "halves", ""))
define(
    "vector",
    "f:uu",
    {"v_dot2c_f32_f16": lambda x, a, b: _dot_halves(a, b, x.old)},
    wants="lane",
    draw=("halves", "halves"),
    tags={"plain"},
)


def _onto_halves(lane: Any, a: int, b: int) -> tuple[Result, ...]:
    return tuple(fma(F16, a >> s & M16, b >> s & M16, lane.old >> s & M16) for s in (0, 16))


define("vector", "q:qq", {"v_pk_fmac_f16": _onto_halves}, wants="lane")


def _mixed(a: int, b: int, c: int) -> Result:
    return fma(F32, a, b, c)


def _mixed_half(a: int, b: int, c: int) -> Result:
    """One rounding to a float, another one to a half."""
    result = fma(F32, a, b, c)
    return converted(F32, F16)(result) if isinstance(result, int) else result


define("mixed", "f:mmm", {"v_fma_mix_f32": _mixed})
define("mixed", "H:mmm", {"v_fma_mixlo_f16": _mixed_half, "v_fma_mixhi_f16": _mixed_half})


def _either_nan(a: int) -> Result:
    """LLVM takes it to canonicalise; the document has it move bits."""
    return OneOf((a, quiet(F16, a))) if is_nan(F16, a) else a


define("vector", "q:hh", {"v_pack_b32_f16": lambda a, b: (_either_nan(a), _either_nan(b))}, tags={"no clamp"})
