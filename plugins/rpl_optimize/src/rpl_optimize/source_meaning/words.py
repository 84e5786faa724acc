"""Numbers and words of a source as they are written, where no syntax tree has them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

__all__ = ["numbers_in", "value_of", "words_in"]

_TOKENS = re.compile(
    rb"//[^\n]*|/\*.*?\*/"
    rb'|"(?:\\.|[^"\\\n])*"' + rb"|'(?:\\.|[^'\\\n])*'"
    rb"|(?P<word>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)",
    re.DOTALL,
)


def numbers_in(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Each number that is written in a source, and where; not those in comments, strings and names."""
    for match in _TOKENS.finditer(text):
        if match["number"] is not None:
            yield match.start(), match["number"]


def words_in(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Each name and keyword of a source, and where; not those in comments and strings."""
    for match in _TOKENS.finditer(text):
        if match["word"] is not None:
            yield match.start(), match["word"]


def value_of(number: bytes) -> float:
    """The value of a number as C++ writes it; a word that is none is not a number."""
    digits = number.replace(b"'", b"").decode("ascii", "replace").lower()
    octal = re.fullmatch(r"0[0-7]+[ulz]*", digits) is not None
    try:
        return int(digits.rstrip("ulz"), 8 if octal else 0)
    except ValueError:
        pass
    try:
        return float.fromhex(digits) if digits.startswith("0x") else float(digits.rstrip("fl"))
    except ValueError:
        return math.nan
