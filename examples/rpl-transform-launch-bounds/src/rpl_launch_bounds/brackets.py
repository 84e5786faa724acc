"""Matching brackets and the commas between them, in text that holds code only."""

from __future__ import annotations

_CLOSING = {ord("("): ord(")"), ord("["): ord("]"), ord("{"): ord("}")}


def matching_end(code: bytes, opening: int) -> int | None:
    """The offset behind the bracket that closes the one at ``opening``, or ``None``."""
    expected: list[int] = []
    for offset in range(opening, len(code)):
        byte = code[offset]
        if byte in _CLOSING:
            expected.append(_CLOSING[byte])
        elif expected and byte == expected[-1]:
            expected.pop()
            if not expected:
                return offset + 1
        elif byte in _CLOSING.values():
            return None
    return None


def split_arguments(code: bytes) -> list[bytes]:
    """``code`` at its commas outside of brackets, each part stripped."""
    parts, depth, begin = [], 0, 0
    for offset, byte in enumerate(code):
        if byte in b"([{":
            depth += 1
        elif byte in b")]}":
            depth -= 1
        elif byte == ord(",") and depth == 0:
            parts.append(code[begin:offset].strip())
            begin = offset + 1
    return [*parts, code[begin:].strip()]
