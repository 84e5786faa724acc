"""Compare one output: its bytes, and where they differ its numbers as far as somebody says what it holds."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rpl_optimize.equivalence.compare_arrays import compare_npy, compare_raw
from rpl_optimize.equivalence.compare_text import compare_text, looks_like_text
from rpl_optimize.equivalence.comparison import Comparison, blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_optimize.equivalence.comparison import Tolerance
    from rpl_optimize.equivalence.output_spec import OutputSpec


def compare_outputs(spec: OutputSpec, baseline: Path, candidate: Path, tolerance: Tolerance) -> Comparison:
    """Compare two existing files. Equal bytes are always equal; a tolerance needs numbers."""
    exact = compare_bytes(baseline, candidate)
    if exact.equal or tolerance.exact:
        return exact
    if spec.number_type is not None:
        return compare_raw(baseline, candidate, spec.number_type, tolerance)
    if spec.name.endswith(".npy"):
        return compare_npy(baseline, candidate, tolerance)
    if looks_like_text(baseline) and looks_like_text(candidate):
        return compare_text(baseline, candidate, tolerance)
    kind = "binary" if not looks_like_text(baseline) else "text in the baseline only"
    return Comparison(
        None,
        f"its bytes differ, and it is {kind}: to apply a tolerance, say what it holds, for example"
        f" {spec.name}:f32",
    )


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
