"""Checks of single values in JSON from elsewhere: a wrong type is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rpl_core.errors import BadDataError

_LIMIT = 1 << 62


def whole(value: Any, path: Path, place: str) -> int:
    """``value`` as an integer that fits into 63 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or not -_LIMIT < value < _LIMIT:
        raise BadDataError(f"{path}: {place} is no integer of 63 bits: {str(value)[:60]!r}")
    return value


def text(value: Any, path: Path, place: str) -> str:
    """``value`` as text; JSON null is the empty text, which traces use for 'none'."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadDataError(f"{path}: {place} is no text: {str(value)[:60]!r}")
    return value


def mapping(value: Any, path: Path, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadDataError(f"{path}: {place} is no object: {type(value).__name__}")
    return value


def rows(value: Any, path: Path, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadDataError(f"{path}: {place} is no array: {type(value).__name__}")
    return value
