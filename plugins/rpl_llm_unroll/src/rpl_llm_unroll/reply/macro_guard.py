"""Guard on macros that hand their arguments to the compiler: ``#define DO(x) _Pragma(#x)``.

Such a macro of the user's is used in the new kernel exactly as it was in the old one, or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rpl_llm_unroll.reply.token_guards import is_forbidden
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from rpl_llm_unroll.reply.tokens import Token
    from rpl_llm_unroll.syntax.macros import Macros

#: Macros of other files are known by their names only.
_TELLING_NAME = re.compile(r"\w*(?:pragma|asm|attribute)\w*", re.IGNORECASE)
_MAX_DEPTH = 16


def macro_verdict(new: tuple[Token, ...], old: tuple[Token, ...], macros: Macros) -> GuardVerdict:
    known = Counter(text for text, _ in _uses(old, macros))
    for text, line in _uses(new, macros):
        known[text] -= 1
        if known[text] < 0:
            reason = f"line {line} of the block: the macro use {text[:80]!r} was added or changed"
            return GuardVerdict("macros", False, reason, line)
    return GuardVerdict("macros", True, "no macro that speaks to the compiler was added")


def _uses(tokens: tuple[Token, ...], macros: Macros) -> list[tuple[str, int]]:
    found = []
    for number, token in enumerate(tokens):
        if token.kind == "word" and _speaks(token.text, macros, _MAX_DEPTH):
            found.append((_with_arguments(tokens[number:]), token.line))
    return found


def _speaks(name: str, macros: Macros, depth: int) -> bool:
    definitions = macros.of(name)
    if not definitions:
        return _TELLING_NAME.fullmatch(name) is not None
    if depth == 0:
        return True
    words = {word for macro in definitions for word in macro.words()}
    if any(is_forbidden(word) for word in words):
        return True
    return any(word != name and macros.of(word) and _speaks(word, macros, depth - 1) for word in words)


def _with_arguments(tokens: tuple[Token, ...]) -> str:
    """``NAME ( a , b )`` as text, or the name alone."""
    depth, texts = 0, [tokens[0].text]
    for token in tokens[1:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text != ")":
            break
        texts.append(token.text)
        if depth == 0:
            break
    return " ".join(texts)
