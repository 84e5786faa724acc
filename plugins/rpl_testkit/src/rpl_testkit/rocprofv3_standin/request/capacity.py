"""How many counters a pass can hold: limits per hardware block (docs/reference/counters.md, 1.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rpl_testkit.synthetic_recording.counter_twin import base_counters, counter_block

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PASS_LIMITS", "overfull_blocks"]

#: gfx9 counters per block and pass; SQC is part of SQ.
PASS_LIMITS: Final = {
    "SQ": 8,
    "TCC": 4,
    "TCP": 4,
    "TA": 2,
    "TD": 2,
    "TCA": 4,
    "SPI": 6,
    "CPC": 2,
    "CPF": 2,
    "GRBM": 2,
    "GDS": 4,
}


def overfull_blocks(counters: Iterable[str]) -> tuple[str, ...]:
    """Return the blocks that `counters` ask too much of, sorted; derived counters count their bases."""
    needed = {base for name in counters for base in base_counters(name)}
    blocks = [counter_block(name) for name in needed]
    return tuple(sorted(block for block in set(blocks) if blocks.count(block) > PASS_LIMITS[block]))
