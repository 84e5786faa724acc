"""Guards on the text of a new kernel before any compiler sees it: on its characters, then on its tokens.

Line splices, trigraphs, digraphs and universal character names are resolved before or while a compiler
splits a source into tokens, so guards that look at tokens would not see what they hide.

What the kernel means is judged later, by the compiler (``rpl_optimize.source_meaning``). Here stands only
what may not even reach one: directives, which read files or say other things to the preprocessor, and
assembly, whose ``.incbin`` brings files into the code object. Whatever the original has as often is allowed.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from rpl_llm_unroll.reply.model import Problem
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
#: Control and format characters (bidirectional marks, zero-width signs), private use and surrogates.
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_SPLICED_LINE = re.compile(r"^.*\\[ \t]*$", re.MULTILINE)
#: [lex.trigraph], [lex.digraph] and [lex.charset] of C++; ``<::`` is no digraph.
_SPELLINGS = {
    "a trigraph": re.compile(r"\?\?[=/'()!<>-]"),
    "a digraph": re.compile(r"%:|<%|%>|<:(?!:)|(?<!:):>"),
    "a universal character name": re.compile(r"\\[uUN]"),
}


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


def character_problem(text: str, original: str) -> Problem | None:
    """The first character or spelling in ``text`` that may not be there and is not in ``original`` either."""
    for position, character in enumerate(text):
        if character not in "\n\t" and unicodedata.category(character) in _HIDDEN:
            line = text.count("\n", 0, position) + 1
            return Problem(f"line {line} of the block has the invisible character U+{ord(character):04X}")
    known = Counter(line.strip() for line in _SPLICED_LINE.findall(original.replace("\r\n", "\n")))
    for spliced in _SPLICED_LINE.findall(text):
        known[spliced.strip()] -= 1
        if known[spliced.strip()] < 0:
            return Problem("a line of the block ends in a backslash, which joins it with the next")
    for what, pattern in _SPELLINGS.items():
        if len(pattern.findall(text)) > len(pattern.findall(original)):
            return Problem(f"the block has {what}")
    return None
