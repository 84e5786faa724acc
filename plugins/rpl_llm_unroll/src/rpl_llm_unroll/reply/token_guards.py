"""Guards on the tokens of a new kernel: what reaches out of it, or talks to the compiler behind its back.

Whatever the original has as often is allowed. The refusals are stricter than safety needs, where kernels
have no use for a construct: a refused reply costs one repair turn.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from rpl_llm_unroll.guards import names
from rpl_llm_unroll.guards.pure_functions import only_computes
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rpl_llm_unroll.reply.tokens import Token

    Tokens = tuple[Token, ...]

#: Pragmas that only ask for unrolling, whole lines. Clang's "Extensions for loop hint optimizations".
_UNROLL_PRAGMA = re.compile(
    r"#[ \t]*pragma[ \t]+(?:nounroll|unroll(?:[ \t]*\(?[ \t]*\w+[ \t]*\)?)?"
    r"|clang[ \t]+loop(?:[ \t]+(?:unroll(?:_count)?)[ \t]*\([ \t]*\w+[ \t]*\))+)[ \t]*(?://[^\n]*)?"
)
#: Word -> what it is. Sources: GCC and Clang manuals (attributes, assembly, predefined macros), C++20
#: [cpp.import], HIP's "C++ language extensions".
_FORBIDDEN = {
    "inline assembly": r"asm|__asm|__asm__",
    "an attribute": r"__attribute|__attribute__|__declspec|__launch_bounds__|alignas|_Alignas",
    "a pragma": r"_Pragma|__pragma",
    "a word of the preprocessor": r"__has_\w+|__FILE__|__FILE_NAME__|__BASE_FILE__|__LINE__|__COUNTER__"
    r"|__DATE__|__TIME__|__TIMESTAMP__|__INCLUDE_LEVEL__|__VA_\w+"
    r"|__builtin_(?:FILE|LINE|FUNCTION|COLUMN|source_location)\w*",
    "a module": r"import|module|export",
    "a declaration that reaches out of the kernel": r"__global__|__device__|__host__|__constant__|__managed__"
    r"|extern|friend|thread_local",
    "a call into the host": r"printf|puts|putchar|\w*printf|system|popen|fopen|getenv|dlopen|syscall|exec\w*"
    r"|__ockl_\w+|__hip_host\w*|hip(?!(?:Thread|Block|Grid)(?:Idx|Dim)_[xyz]\b|\w*Complex\b)[A-Z]\w*",
    "memory from a heap": r"malloc|free|calloc|realloc|new|delete|alloca|__builtin_\w*alloca\w*",
    "a way to end the program": names.EXITS.pattern,
    "an assumption that nobody has checked": r"__builtin_assume\w*|__assume|__builtin_unpredictable",
}
_FORBIDDEN_WORDS = {what: re.compile(pattern) for what, pattern in _FORBIDDEN.items()}
#: AMDGPU builtins that change or leave the wave's state, or read what the launch hid (clang, BuiltinsAMDGPU).
_DENIED_BUILTINS = re.compile(
    r"__builtin_amdgcn_(?:s_sethalt|s_trap|s_sendmsg\w*|s_setreg\w*|s_ttracedata\w*|s_(?:de|in)cperflevel"
    r"|init_exec\w*|queue_ptr|dispatch_ptr|dispatch_id|implicitarg_ptr|kernarg_segment_ptr|kill|endpgm)"
)
_SYNCHRONISING = (names.BARRIERS, names.FENCES, names.ATOMICS, names.CROSS_LANE)
_PLAIN_CHARACTER = re.compile(r"'[A-Za-z0-9_ ]'")


def token_verdicts(new: Tokens, old: Tokens) -> tuple[GuardVerdict, ...]:
    """One verdict per guard; ``old`` are the original kernel's tokens."""
    return tuple(guard(new, old) for guard in _GUARDS)


def is_forbidden(word: str) -> bool:
    """Whether a word may not be added to a kernel."""
    return any(pattern.fullmatch(word) for pattern in _FORBIDDEN_WORDS.values())


def _directives(new: Tokens, old: Tokens) -> GuardVerdict:
    known = Counter(" ".join(t.text.split()) for t in old if t.kind == "directive")
    for token in new:
        if token.kind != "directive" or _UNROLL_PRAGMA.fullmatch(token.text.rstrip()):
            continue
        text = " ".join(token.text.split())
        known[text] -= 1
        if known[text] < 0:
            return _refused("directives", token, f"the directive {text[:60]!r} was added")
    return GuardVerdict("directives", True, "no directive was added but those that ask for unrolling")


def _words(new: Tokens, old: Tokens) -> GuardVerdict:
    for token in _added(new, old, "word"):
        for what, pattern in _FORBIDDEN_WORDS.items():
            if pattern.fullmatch(token.text):
                return _refused("words", token, f"{token.text} was added: {what}")
    return GuardVerdict("words", True, "no word was added that reaches out of the kernel")


def _builtins(new: Tokens, old: Tokens) -> GuardVerdict:
    for token in _added(new, old, "word"):
        if token.text.startswith("__builtin_") and not _harmless_builtin(token.text):
            return _refused(
                "builtins", token, f"{token.text} was added, and nobody here knows that it only computes"
            )
    return GuardVerdict("builtins", True, "every builtin that was added is a known device function")


def _harmless_builtin(name: str) -> bool:
    if _DENIED_BUILTINS.fullmatch(name):
        return False
    known = only_computes(name) or any(pattern.fullmatch(name) for pattern in _SYNCHRONISING)
    return known or name.startswith("__builtin_amdgcn_")


def _literals(new: Tokens, old: Tokens) -> GuardVerdict:
    known = {token.text for token in old}
    for token in new:
        plain = token.kind == "char" and _PLAIN_CHARACTER.fullmatch(token.text)
        if token.kind in {"string", "char"} and token.text not in known and not plain:
            return _refused("literals", token, f"a {token.kind} literal was added")
    return GuardVerdict("literals", True, "no string was added")


def _signs(new: Tokens, old: Tokens) -> GuardVerdict:
    known = {token.text for token in old}
    for token in new:
        odd = token.kind == "sign" and token.text in "#@$`\\"
        if (odd or not token.text.isascii()) and token.text not in known:
            return _refused("signs", token, f"{token.text[:20]!r} stands outside of a comment")
    if _attributes(new) > _attributes(old):
        return GuardVerdict("signs", False, "an attribute ([[...]]) was added")
    return GuardVerdict("signs", True, "no attribute and no foreign sign was added")


def _attributes(tokens: Tokens) -> int:
    return sum(a.text == b.text == "[" for a, b in pairwise(tokens))


def _added(new: Tokens, old: Tokens, kind: str) -> Iterable[Token]:
    """Tokens of ``new`` beyond the number of times that ``old`` has them."""
    known = Counter(token.text for token in old if token.kind == kind)
    for token in new:
        if token.kind == kind:
            known[token.text] -= 1
            if known[token.text] < 0:
                yield token


def _refused(guard: str, token: Token, reason: str) -> GuardVerdict:
    return GuardVerdict(guard, False, f"line {token.line} of the block: {reason}", token.line)


_GUARDS: tuple[Callable[[Tokens, Tokens], GuardVerdict], ...] = (
    _directives,
    _words,
    _builtins,
    _literals,
    _signs,
)
