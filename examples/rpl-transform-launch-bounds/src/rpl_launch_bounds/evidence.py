"""What a run says for bounding a kernel: its share of the critical path, and the registers that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rpl_codeobject.kernel_names import is_instance
from rpl_optimize.interfaces.transformation import Evidence


def evidence_for(kernel: str, documents: Mapping[str, Any]) -> Evidence:
    """No more can be gained than the kernel's share of the critical path; without it nothing is expected.

    ``scratch_bytes`` above 0 says that the compiler had too few registers under its usual limit.
    """
    scores = [entry.get("critical_path_score") for entry in _kernels(documents, "analysis", kernel, "kernel")]
    resources = [entry.get("resources") or {} for entry in _kernels(documents, "profile", kernel, "name")]
    score = max((float(score) for score in scores if isinstance(score, (int, float))), default=None)
    scratch = max((r["scratch_bytes"] for r in resources if r.get("scratch_bytes") is not None), default=None)
    facts = {"critical_path_score": score, "scratch_bytes": scratch}
    return Evidence(None if score is None else (0.0, min(1.0, max(0.0, score))), facts)


def _kernels(documents: Mapping[str, Any], name: str, kernel: str, key: str) -> list[Mapping[str, Any]]:
    """The entries of a document about the source kernel ``kernel`` and its instances."""
    entries = (documents.get(name) or {}).get("kernels") or ()
    return [entry for entry in entries if is_instance(str(entry.get(key)), kernel)]
