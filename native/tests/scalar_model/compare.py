"""V_CMP, V_CMPX and their classes of numbers."""

from __future__ import annotations

from collections.abc import Callable

from .number_formats import Format, equal, exponent, is_nan, is_signalling, is_zero, less, sign
from .operations import define, signed
from .vector_float import FORMATS

_FLOATS: dict[str, Callable[[Format, int, int], bool]] = {
    "f": lambda f, a, b: False,
    "lt": less,
    "eq": equal,
    "le": lambda f, a, b: less(f, a, b) or equal(f, a, b),
    "gt": lambda f, a, b: less(f, b, a),
    "lg": lambda f, a, b: less(f, a, b) or less(f, b, a),
    "ge": lambda f, a, b: less(f, b, a) or equal(f, a, b),
    "o": lambda f, a, b: not is_nan(f, a) and not is_nan(f, b),
}
_NEGATED = {
    "u": "o",
    "nge": "ge",
    "nlg": "lg",
    "ngt": "gt",
    "nle": "le",
    "neq": "eq",
    "nlt": "lt",
    "tru": "f",
}
_INTEGERS: dict[str, Callable[[int, int], bool]] = {
    "f": lambda a, b: False,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
    "t": lambda a, b: True,
}


def _both(name: str, signature: str, function: Callable[..., int], *, keeps_denormals: bool = False) -> None:
    compared = {f"v_cmp_{name}": function}
    define("vector", signature, compared, keeps_denormals=keeps_denormals)
    compared = {f"v_cmpx_{name}": function}
    define("vector", signature, compared, wants="writes exec", keeps_denormals=keeps_denormals)


def _class_of(f: Format, a: int) -> int:
    negative = sign(f, a)
    if is_nan(f, a):
        return 0 if is_signalling(f, a) else 1
    if exponent(f, a) == f.highest_exponent:
        return 2 if negative else 9
    if exponent(f, a) > 0:
        return 3 if negative else 8
    if not is_zero(f, a):
        return 4 if negative else 7
    return 5 if negative else 6


for _suffix, (_f, _t) in FORMATS.items():
    for _name, _c in _FLOATS.items():
        _both(f"{_name}_{_suffix}", f"b:{_t}{_t}", lambda a, b, f=_f, c=_c: int(c(f, a, b)))
    for _name, _of in _NEGATED.items():
        _both(f"{_name}_{_suffix}", f"b:{_t}{_t}", lambda a, b, f=_f, c=_FLOATS[_of]: int(not c(f, a, b)))
    _both(
        f"class_{_suffix}",
        f"b:{_t}u",
        lambda a, mask, f=_f: mask >> _class_of(f, a) & 1,
        keeps_denormals=True,
    )
for _bits, _t in ((16, "w"), (32, "u"), (64, "U")):
    for _name, _d in _INTEGERS.items():
        _both(f"{_name}_u{_bits}", f"b:{_t}{_t}", lambda a, b, c=_d: int(c(a, b)))
        _both(
            f"{_name}_i{_bits}",
            f"b:{_t}{_t}",
            lambda a, b, c=_d, n=_bits: int(c(signed(a, n), signed(b, n))),
        )
