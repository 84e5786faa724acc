"""Characters and spellings that a compiler reads differently from people or parsers are refused.

Line splices, trigraphs, digraphs and universal character names are resolved before or while a compiler
splits a source into tokens, so guards that look at tokens would not see what they hide.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from rpl_llm_unroll.reply.model import Problem

#: Control and format characters (bidirectional marks, zero-width signs), private use and surrogates.
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_SPLICED_LINE = re.compile(r"^.*\\[ \t]*$", re.MULTILINE)
#: [lex.trigraph], [lex.digraph] and [lex.charset] of C++; ``<::`` is no digraph.
_SPELLINGS = {
    "a trigraph": re.compile(r"\?\?[=/'()!<>-]"),
    "a digraph": re.compile(r"%:|<%|%>|<:(?!:)|(?<!:):>"),
    "a universal character name": re.compile(r"\\[uUN]"),
}


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
