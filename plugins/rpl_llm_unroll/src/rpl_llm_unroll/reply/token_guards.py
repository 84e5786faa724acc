"""Guards on the tokens of a new kernel before any compiler sees it: what could act while it is compiled.

What the kernel means is judged later, by the compiler (``rpl_optimize.source_meaning``). Here stands only
what may not even reach one: directives, which read files or say other things to the preprocessor, and
assembly, whose ``.incbin`` brings files into the code object. Whatever the original has as often is allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from rpl_llm_unroll.reply.tokens import Token

    Tokens = tuple[Token, ...]

#: Pragmas that only ask for unrolling, whole lines. Clang's "Extensions for loop hint optimizations".
_UNROLL_PRAGMA = re.compile(
    r"#[ \t]*pragma[ \t]+(?:nounroll|unroll(?:[ \t]*\(?[ \t]*\w+[ \t]*\)?)?"
    r"|clang[ \t]+loop(?:[ \t]+(?:unroll(?:_count)?)[ \t]*\([ \t]*\w+[ \t]*\))+)[ \t]*(?://[^\n]*)?"
)
_SPEAKING = re.compile(r"asm|__asm|__asm__|_Pragma|__pragma|__has_include\w*|__has_embed|import|module")


def token_verdicts(new: Tokens, old: Tokens) -> tuple[GuardVerdict, ...]:
    """One verdict per guard; ``old`` are the original kernel's tokens."""
    return (_directives(new, old), _words(new, old))


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
    known = Counter(token.text for token in old if token.kind == "word")
    for token in new:
        if token.kind == "word" and _SPEAKING.fullmatch(token.text):
            known[token.text] -= 1
            if known[token.text] < 0:
                return _refused("words", token, f"{token.text} was added, which speaks to the compiler")
    return GuardVerdict("words", True, "no assembly and no pragma was added")


def _refused(guard: str, token: Token, reason: str) -> GuardVerdict:
    return GuardVerdict(guard, False, f"line {token.line} of the block: {reason}", token.line)
