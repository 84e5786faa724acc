"""Rounding to allocation steps, the one piece of arithmetic that inputs, limits and thresholds share."""

from __future__ import annotations

__all__ = ["round_down", "round_up"]


def round_up(value: int, step: int) -> int:
    """The smallest multiple of ``step`` that is not below ``value``."""
    return -(-value // step) * step


def round_down(value: int, step: int) -> int:
    """The largest multiple of ``step`` that is not above ``value``."""
    return value // step * step
