"""Split C++ text into tokens the way a compiler does, as a second opinion beside the parse tree.

A parser recovers from what it does not understand; this does not. Text with trigraphs, new line splices and
the like was refused before.
"""

from __future__ import annotations

import re
from typing import Literal

from rpl_core.values import frozen
from rpl_llm_unroll.reply.model import Problem

Kind = Literal["word", "number", "string", "char", "directive", "sign"]
_SPLICE = re.compile(r"\\[ \t]*\n")
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\v\f]+)
      |(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^ ()\\\t\v\f\n"]{0,16})\(.*?\)(?P=mark)"
                 |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
      |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      |(?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])*)
      |(?P<word>[^\W\d]\w*)
      |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_REST_OF_LINE = re.compile(r"[^\n]*")


@frozen
class Token:
    """``line`` counts from 1 in the text that was split."""

    kind: Kind
    text: str
    line: int


def split_tokens(text: str) -> tuple[Token, ...] | Problem:
    """Tokens without comments and layout; a directive is one token up to the end of its line."""
    text = _SPLICE.sub("", text.replace("\r\n", "\n"))
    tokens: list[Token] = []
    position, line, fresh = 0, 1, True
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind, piece = str(match.lastgroup), match.group()
        if kind == "sign" and piece == "#" and fresh:
            match = _REST_OF_LINE.match(text, position)
            assert match is not None
            kind, piece = "directive", match.group()
        if kind == "sign" and (problem := _broken(text, position, line)) is not None:
            return problem
        if kind not in {"space", "comment"}:
            tokens.append(Token(kind, piece, line))  # type: ignore[arg-type]
        fresh = "\n" in piece or (fresh and kind in {"space", "comment"})
        line += piece.count("\n")
        position = match.end()
    return tuple(tokens)


def _broken(text: str, position: int, line: int) -> Problem | None:
    if text.startswith("/*", position):
        return Problem(f"the comment that begins in line {line} of the block is not closed")
    if text[position] in "\"'":
        return Problem(f"a string or character in line {line} of the block is not closed")
    return None
