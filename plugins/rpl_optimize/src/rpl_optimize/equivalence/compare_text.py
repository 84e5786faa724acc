"""Two texts token by token: numbers within the tolerance, everything else as it is.

A number is written in decimal and stands alone or between punctuation: the digits of ``0x1f``, ``v2`` or
``3ms`` are part of a word. Blanks only separate, so a column that got wider is no difference.
"""

from __future__ import annotations

import math
import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from rpl_optimize.equivalence.comparison import Comparison, Numbers, Tolerance, blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NUMBER = re.compile(
    rb"(?<![\w.])([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan))(?![\w.])", re.IGNORECASE
)
#: Behind these a long line may be cut; no number holds one.
_SEPARATORS = (b" ", b"\t", b",", b";", b"]", b"}", b")")
_PUNCTUATION = re.compile(rb"([,;\]})])")
_LONGEST_WORD = 1 << 16


def looks_like_text(path: Path) -> bool:
    """Whether the beginning holds no NUL byte and is UTF-8."""
    with path.open("rb") as stream:
        begin = stream.read(1 << 16)
    try:
        begin.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(begin) - 4 and b"\0" not in begin  # a character cut by the block's end
    return b"\0" not in begin


def compare_text(baseline: Path, candidate: Path, tolerance: Tolerance) -> Comparison:
    """Compare all tokens; the first that is no number and differs ends it."""
    try:
        return _compare_tokens(baseline, candidate, tolerance)
    except _EndlessWordError:
        return Comparison(None, "a word of it is too long to compare by numbers")


def _compare_tokens(baseline: Path, candidate: Path, tolerance: Tolerance) -> Comparison:
    numbers = Numbers(tolerance)
    for left, right in zip_longest(_tokens(baseline), _tokens(candidate)):
        if left is None or right is None:
            what = "ends early" if right is None else "goes on behind the baseline's end"
            return Comparison(
                False, f"the text {what}, in line {(left or right or (b'', 0))[1]} of the longer"
            )
        (old, line), (new, _) = left, right
        problem = _compare_token(old, new, line, numbers)
        if problem is not None:
            return Comparison(False, problem)
    return numbers.comparison()


def _compare_token(old: bytes, new: bytes, line: int, numbers: Numbers) -> str | None:
    is_number = _NUMBER.fullmatch(old) is not None
    numbers.count += is_number
    if old == new:
        return None
    if not is_number or _NUMBER.fullmatch(new) is None:
        return f"{_shown(old)} became {_shown(new)} in line {line}"
    before, after = float(old), float(new)
    if before == after or (math.isnan(before) and math.isnan(after)):
        return None
    difference = abs(after - before)
    allowed = math.isfinite(before) and numbers.tolerance.allows(before, difference)
    numbers.note(difference, f"{_shown(old)} became {_shown(new)} in line {line}", allowed=allowed)
    return None


def _tokens(path: Path) -> Iterator[tuple[bytes, int]]:
    """Numbers and the text between them, with their line."""
    for word, line in _words(path):
        for part in _NUMBER.split(word):
            if part:
                yield part, line


def _words(path: Path) -> Iterator[tuple[bytes, int]]:
    rest, line = b"", 1
    for block in blocks_of(path):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        for text in lines:
            for word in _split(text):
                yield word, line
            line += 1
        # A line may be as long as the file: its words so far are done with.
        end = max(rest.rfind(separator) for separator in _SEPARATORS) + 1
        for word in _split(rest[:end]):
            yield word, line
        rest = rest[end:]
        if len(rest) > _LONGEST_WORD:
            raise _EndlessWordError
    for word in _split(rest):
        yield word, line


def _split(text: bytes) -> list[bytes]:
    """At blanks, and behind every separator: so words don't depend on where a long line was cut."""
    return _PUNCTUATION.sub(rb"\1 ", text).split()


class _EndlessWordError(Exception):
    """Cutting it anywhere might cut a number in two."""


def _shown(token: bytes) -> str:
    text = token[:40].decode("utf-8", "replace")
    return f"{text!r}..." if len(token) > 40 else repr(text)
