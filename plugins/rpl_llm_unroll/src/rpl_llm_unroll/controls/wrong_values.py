"""The C++ that makes values wrong, for any type that a kernel may store.

A wrong value departs by far more than rounding does, does not merely scale (a later step may normalise),
and of an integer stays small (it may index something). What is not a number gets one bit of each byte
changed: of a float in it, one in the exponent.
"""

from __future__ import annotations

_INTEGERS = (
    *("char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int"),
    *("long", "unsigned long", "long long", "unsigned long long"),
)
_DEVICE = "__attribute__((device)) static inline"


def _special(kind: str, expression: str) -> str:
    return f"template <> struct Wrong<{kind}> {{ {_DEVICE} {kind} of({kind} v) {{ return {expression}; }} }};"


_LINES = (
    '#pragma clang diagnostic ignored "-Weverything"',  # a user's -Werror must not stop a control
    "namespace rpl_control {",
    "template <typename T> __attribute__((device)) T plain(const volatile T&);",
    f"template <typename T> struct Wrong {{ {_DEVICE} T of(T v) {{",
    "  unsigned char* bytes = reinterpret_cast<unsigned char*>(__builtin_addressof(v));",
    "  for (unsigned i = 0; i < sizeof(T); ++i) bytes[i] ^= 0x40;",
    "  return v; } };",
    _special("bool", "!v"),
    *(_special(kind, f"({kind})(v == 0 ? 1 : v == 1 ? 2 : v / 2)") for kind in _INTEGERS),
    *(
        _special(kind, f"v - v == 0 ? v * ({kind})0.5 + ({kind})0.37 : ({kind})1")
        for kind in ("float", "double")
    ),
    "template <typename T> __attribute__((device)) inline T changed(T v) { return Wrong<T>::of(v); }",
    "}  // namespace rpl_control",
    "",
)
#: Goes in front of the whole file.
PRELUDE = "\n".join(_LINES).encode()
#: A value made wrong; an initializer list with the type of what it is stored in.
CHANGED = b"::rpl_control::changed(%s)"
PLAIN = b"decltype(::rpl_control::plain(%s))%s"
#: At the beginning of a body: every other thread of every other block does nothing.
SKIP_HALF = (
    b" if ((threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z) & 1u) return;"
)
