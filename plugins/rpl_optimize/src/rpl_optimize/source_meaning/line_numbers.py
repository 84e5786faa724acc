"""Numbers of lines as compilers show them, and how an edit keeps those behind it."""

from __future__ import annotations

import re

__all__ = ["line_directive", "shown_line"]

_LINE = re.compile(rb"^[ \t]*#[ \t]*line[ \t]+(?P<number>\d+)", re.MULTILINE)


def shown_line(text: bytes, offset: int) -> int:
    """The number that compilers give to the line of ``offset``, ``#line`` directives before it followed."""
    line = text.count(b"\n", 0, offset) + 1
    last = None
    for last in _LINE.finditer(text, 0, offset):  # noqa: B007 - the last one counts
        pass
    if last is None:
        return line
    return int(last["number"]) + line - (text.count(b"\n", 0, last.end()) + 1) - 1


def line_directive(before: bytes, end: int) -> bytes:
    """What keeps the numbers of the lines behind a function that ends at ``end`` of ``before``."""
    newline = b"\r\n" if before[end : end + 2] == b"\r\n" else b"\n"
    return newline + b"#line %d" % (shown_line(before, end) + 1)
