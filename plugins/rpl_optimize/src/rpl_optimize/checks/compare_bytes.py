"""Two files byte by byte."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rpl_optimize.checks.comparison import Comparison, blocks_of

if TYPE_CHECKING:
    from pathlib import Path


def compare_bytes(baseline: Path, candidate: Path) -> Comparison:
    """Equal bytes, or where the first difference is."""
    sizes = baseline.stat().st_size, candidate.stat().st_size
    offset, line = 0, 1
    for left, right in zip_longest(blocks_of(baseline), blocks_of(candidate), fillvalue=b""):
        if left != right:
            at = _first_difference(left, right)
            line += left.count(b"\n", 0, at)
            sized = "" if sizes[0] == sizes[1] else f"{sizes[0]} bytes became {sizes[1]}; "
            return Comparison(False, f"{sized}the first difference is at byte {offset + at} (line {line})")
        offset, line = offset + len(left), line + left.count(b"\n")
    return Comparison(True, f"{offset} bytes equal")


def _first_difference(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:  # the first difference is in [low, high)
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low
