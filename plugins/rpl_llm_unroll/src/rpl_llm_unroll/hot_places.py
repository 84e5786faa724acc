"""Where the time of a kernel went, in rows that any plugin may have added to its entry of ``profile.json``.

Whatever block of the entry has them, ``hot_lines`` are rows with ``source`` ("file:line") and ``latency``,
``hot_instructions`` rows with ``isa``, ``latency`` and ``idle``, in cycles. What else such a block holds
matters to its plugin only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["hot_instructions", "hot_lines"]


def hot_lines(entry: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Lines of source with the cycles that waves spent there."""
    for row in _rows(entry, "hot_lines"):
        yield str(row.get("source")), _cycles(row.get("latency"))


def hot_instructions(entry: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Texts of instructions with the cycles that waves spent there, idle ones included."""
    for row in _rows(entry, "hot_instructions"):
        yield str(row.get("isa")), _cycles(row.get("latency")) + _cycles(row.get("idle"))


def _rows(entry: Mapping[str, Any], field: str) -> Iterator[Mapping[str, Any]]:
    """The blocks are checked by nobody but their plugins, and documents may come from anywhere."""
    for block in entry.values():
        rows = block.get(field) if isinstance(block, Mapping) else None
        if isinstance(rows, (list, tuple)):
            yield from (row for row in rows if isinstance(row, Mapping))


def _cycles(value: object) -> int:
    return value if isinstance(value, int) else 0
