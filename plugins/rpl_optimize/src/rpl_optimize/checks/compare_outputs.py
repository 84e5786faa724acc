"""Choose how to compare one output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_optimize.checks.compare_arrays import compare_npy, compare_raw
from rpl_optimize.checks.compare_bytes import compare_bytes
from rpl_optimize.checks.compare_text import compare_text, looks_like_text
from rpl_optimize.checks.comparison import Comparison

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_optimize.checks.comparison import Tolerance
    from rpl_optimize.checks.output_spec import OutputSpec


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
