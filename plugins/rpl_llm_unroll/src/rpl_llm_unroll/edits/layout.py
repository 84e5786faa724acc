"""Indentation and line ends as the surrounding source has them."""

from __future__ import annotations


def line_start(text: bytes, position: int) -> int:
    """Where the line of ``position`` begins."""
    return text.rfind(b"\n", 0, position) + 1


def indentation(text: bytes, position: int) -> bytes:
    """The blanks that open the line of ``position``."""
    start = line_start(text, position)
    line = text[start:position]
    return line[: len(line) - len(line.lstrip(b" \t"))]


def newline(text: bytes, position: int) -> bytes:
    """The line end used around ``position``."""
    start = line_start(text, position)
    end = text.find(b"\n", position)
    uses_crlf = text[max(0, start - 2) : start] == b"\r\n" or (end > 0 and text[end - 1 : end] == b"\r")
    return b"\r\n" if uses_crlf else b"\n"
