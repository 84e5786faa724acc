"""The two controls of a kernel: one that does nothing, and one that stores wrong values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_llm_unroll.controls.stores import Store, find_stores
from rpl_llm_unroll.syntax.source_file import read_source_file
from rpl_llm_unroll.syntax.tree import first_error, text_of
from rpl_optimize.interfaces.transformation import Edit, EditCandidate

if TYPE_CHECKING:
    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_llm_unroll.syntax.source_file import SourceFile
    from rpl_optimize.interfaces.transformation import KernelSource


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


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_CODE = re.compile(
    rb'R"(?P<tag>[^(\s]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)


def controls_of(source: KernelSource) -> tuple[EditCandidate, ...]:
    """``empty`` and ``broken`` for ``source.kernel``; all kernels of that name are edited.

    None without a kernel's name, for an unknown or empty one, and where its end can't be told for certain.
    """
    if source.kernel is None:
        return ()
    file = read_source_file(source.text)
    kernels = [kernel for kernel in file.kernels if kernel.name == source.kernel]
    if not kernels or not all(_is_whole(kernel) for kernel in kernels):
        return ()
    prelude = _prelude(source.text)
    full = [kernel for kernel in kernels if kernel.body.named_child_count]
    empty = tuple(Edit(kernel.body.start_byte, kernel.body.end_byte, b"{ }") for kernel in full)
    broken = tuple(edit for kernel in full for edit in _wrong_stores(file, kernel))
    if not full:  # nothing that could be taken away or made wrong
        return ()
    return (
        _candidate("empty", "the kernel does nothing", kernels[0], (prelude, *empty)),
        _candidate("broken", "the kernel stores wrong values", kernels[0], (prelude, *broken)),
    )


def _candidate(name: str, summary: str, kernel: KernelNode, edits: tuple[Edit, ...]) -> EditCandidate:
    return EditCandidate(id=name, kernel=kernel.name, line=kernel.line, summary=summary, edits=edits)


def _prelude(text: bytes) -> Edit:
    begin = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    return Edit(begin, begin, PRELUDE)


def _is_whole(kernel: KernelNode) -> bool:
    """Whether the body ends where the tree says, although the parser may not know all that is in it."""
    if first_error(kernel.outer) is None:
        return True
    code = _NOT_CODE.sub(b" ", kernel.body.text or b"")
    return code.startswith(b"{") and code.endswith(b"}") and code.count(b"{") == code.count(b"}")


def _wrong_stores(file: SourceFile, kernel: KernelNode) -> list[Edit]:
    stores = find_stores(file, kernel)
    # A wrong value in a lock or ticket hangs the program instead of changing its results.
    plain = [store for store in stores if not store.exchanges] or stores
    if not plain:  # they are in functions that other kernels may call too
        begin = kernel.body.start_byte + 1
        return [Edit(begin, begin, SKIP_HALF)]
    return [_wrong(store) for store in plain]


def _wrong(store: Store) -> Edit:
    value = store.value
    text = value.text or b""
    if store.counts:
        return Edit(value.start_byte, value.end_byte, b"--" if text == b"++" else b"++")
    if value.type == "initializer_list":
        assert store.target is not None
        text = PLAIN % (text_of(store.target).encode(), text)
    return Edit(value.start_byte, value.end_byte, CHANGED % text)
