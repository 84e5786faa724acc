"""Device functions that only compute, so that repeating them in another order of instructions is safe.

Sources: "HIP math API" and "HIP low-precision types" (HIP documentation), clang's ``BuiltinsAMDGPU``.
"""

from __future__ import annotations

import re

_MATH = """
abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0
cyl_bessel_i1 erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim fdivide floor fma fmax
fmin fmod frexp hypot ilogb isfinite isinf isnan j0 j1 labs ldexp lgamma llabs llrint llround log
log10 log1p log2 logb lrint lround mad max min modf nearbyint nextafter norm norm3d norm4d normcdf
normcdfinv pow rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d round rsqrt saturate scalbln
scalbn signbit sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc umax umin ullmax ullmin
llmax llmin y0 y1 clamp lerp
""".split()  # noqa: SIM905 - a hundred quoted names would hide typing errors
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "bit_cast")
_NAMES = frozenset({*_MATH, *(f"{name}f" for name in _MATH), *(f"__{name}f" for name in _MATH), *_CASTS})
_TYPE = r"(?:bool|char|short|int|long|float|double|half|size_t|u?int(?:8|16|32|64)_t)"
_PATTERNS = re.compile(
    r"__[fd](?:add|sub|mul|div|ma|maf|rcp|sqrt|rsqrt)\w*"
    r"|__f(?:divide|dividef|mul|add|sub|ma)\w*"
    r"|__(?:u?mul24|u?mulhi|u?mul64hi|popcl?l?|clzl?l?|ffsl?l?|brevl?l?|byte_perm|u?sad|u?r?hadd|saturatef)"
    r"|__funnelshift_\w+|__bitextract_\w+|__bitinsert_\w+|__lastbit_\w+|__lane_id|lane_id"
    r"|__(?:float|double|half|int|uint|ll|ull|short|ushort|bfloat16|low|high|bf16)\w*2\w+"
    r"|__(?:low|high|halves|float|half)2\w*|__\w+_as_\w+"
    r"|__h(?:add|sub|mul|div|fma|neg|abs|max|min|eq|ne|lt|le|gt|ge|isnan|isinf)2?\w*|h(?:exp|log|sqrt|rsqrt|sin|cos)2?"
    r"|make_\w+[1-4]|__ldg|__ldc[agsv]|__ldlu|__ldcv|__builtin_nontemporal_(?:load|store)"
    r"|__builtin_(?:fma|sqrt|exp|exp2|log|log2|sin|cos|fabs|floor|ceil|trunc|rint|round|pow|fmin|fmax|copysign"
    r"|popcount|clz|ctz|bswap|abs|expect|assume|elementwise_\w+|reduce_\w+|convertvector|shufflevector|bit_cast)\w*"
    r"|__builtin_amdgcn_(?:mfma|smfmac|wmma|swmmac|dot|[su]dot|fdot|cvt|rcp|rsq|sqrt|exp2|log|fract|frexp|ldexp"
    r"|perm|[su]bfe|alignbit|alignbyte|lerp|sad|msad|qsad|mqsad|f?med3|fmul_legacy|fma_legacy|cube|class|sin|cos"
    r"|workitem_id|workgroup_id|workgroup_size|grid_size|mbcnt|div_scale|div_fmas|div_fixup|bitop3|prng)\w*"
    rf"|u?{_TYPE}[1-4]?|unsigned|signed"
)


def only_computes(name: str) -> bool:
    """Whether ``name`` is a known device function, cast or vector type without side effects."""
    return name in _NAMES or _PATTERNS.fullmatch(name) is not None
