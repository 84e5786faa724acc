"""What a run's documents say about the kernels of a source file: weight, label, hot lines, device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import attrs


@attrs.frozen
class KernelEvidence:
    """``score`` is the share of the critical path, ``None`` when no document has it."""

    score: float | None
    label: str | None


def kernel_evidence(documents: Mapping[str, Any], kernel: str) -> KernelEvidence:
    """Evidence for the source kernel ``kernel``; of several instances the one with the largest score."""
    entries = [e for e in _entries(documents, "analysis") if _is_instance(str(e.get("kernel")), kernel)]
    scored = [e for e in entries if isinstance(e.get("critical_path_score"), (int, float))]
    if scored:
        best = max(scored, key=lambda entry: float(entry["critical_path_score"]))
        return KernelEvidence(float(best["critical_path_score"]), _text(best.get("bottleneck")))
    return KernelEvidence(None, _text(entries[0].get("bottleneck")) if entries else None)


def line_latency(documents: Mapping[str, Any], kernel: str, path: str) -> dict[int, int]:
    """Source line -> cycles that traced waves spent there, from ``profile.json``'s thread traces.

    Empty without a trace or when the program was built without line tables. Lines are matched by the
    file's name: the compiler records paths of the machine that it ran on.
    """
    found: dict[int, int] = {}
    for entry in _entries(documents, "profile"):
        att = entry.get("att")
        if not isinstance(att, Mapping) or not _is_instance(str(entry.get("name")), kernel):
            continue
        for row in att.get("hot_lines") or ():
            file, _, line = str(row.get("source")).rpartition(":")
            if line.isdigit() and PurePath(file).name == PurePath(path).name:
                found[int(line)] = found.get(int(line), 0) + int(row.get("latency") or 0)
    return found


def architecture(documents: Mapping[str, Any]) -> str | None:
    """The device's architecture as ``profile.json`` names it."""
    profile = documents.get("profile")
    gpu = profile.get("gpu") if isinstance(profile, Mapping) else None
    return _text(gpu.get("architecture")) if isinstance(gpu, Mapping) else None


def _entries(documents: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    document = documents.get(name)
    kernels = document.get("kernels") if isinstance(document, Mapping) else None
    return [k for k in kernels if isinstance(k, Mapping)] if isinstance(kernels, (list, tuple)) else []


def _is_instance(recorded: str, kernel: str) -> bool:
    """Whether a recorded name is the kernel: as it is, demangled, or Itanium-mangled (length and name)."""
    if recorded.removesuffix(".kd") == kernel:
        return True
    demangled = re.search(rf"(?<!\w){re.escape(kernel)}\s*[<(]", recorded)
    mangled = recorded.startswith("_Z") and re.search(rf"(?<!\d){len(kernel)}{re.escape(kernel)}", recorded)
    return bool(demangled or mangled)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
