"""Text from recordings is data: keep it from steering a terminal."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """``text`` with control characters and terminal escapes shown as ``\\xNN`` (line feeds and tabs stay)."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in text
    )


def harmless_json(text: str) -> str:
    """JSON ``text`` with C1 controls and marks of direction, as ``\\uNNNN``."""
    return text if text.isascii() else _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def encodable(text: str) -> str:
    """``text`` with bytes that are no UTF-8 (of a path, an argument) shown as ``\\udcNN``, as JSON needs."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def readable(text: str, width: int | None = None) -> str:
    """``text`` on one line, without control characters or broken encoding, cut in the middle to ``width``."""
    safe = printable(encodable(text)).replace("\n", "\\n").replace("\t", "\\t")
    return safe if width is None else shorten(safe, width)


def shorten(text: str, width: int) -> str:
    """``text`` cut in the middle to ``width`` characters, so that both ends of a long name stay visible."""
    if len(text) <= width:
        return text
    head = (width - 1) * 2 // 3
    tail = width - 1 - head
    return f"{text[:head]}…{text[-tail:] if tail else ''}"
