"""What a run's documents say for unrolling: weight and label of kernels, hot lines, device; and the order.

The order is a rule of thumb, chosen here, and decides only what is tried first: latency is hidden by more
loads in flight (large factors first), low occupancy forbids registers (small factors first).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.values import frozen
from rpl_llm_unroll.hot_places import hot_lines
from rpl_llm_unroll.loops.source_loop import find_loops
from rpl_llm_unroll.syntax.source_file import read_source_file
from rpl_optimize.interfaces.transformation import Evidence

if TYPE_CHECKING:
    from rpl_llm_unroll.loops.source_loop import SourceLoop
    from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource

_LARGE_FIRST = frozenset({"latency_bound"})
_SMALL_FIRST = frozenset({"under_occupied", "memory_bandwidth_bound", "divergence_limited"})
_USUAL = 4


@frozen
class KernelEvidence:
    """``score`` is the share of the critical path, ``None`` when no document has it."""

    score: float | None
    label: str | None


def unroll_evidence(
    source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
) -> dict[str, Evidence]:
    """Evidence by candidate id.

    In order: kernel score, traced latency of the loop's lines, nesting, place, factor. No more can be
    gained than the kernel's share of the critical path.
    """
    loops = _loops(source)
    ranked: list[tuple[tuple[float | int | str, ...], str, Evidence]] = []
    for candidate in candidates:
        loop = loops.get(_loop_id(candidate))
        if loop is None or not candidate.allowed:
            continue
        kernel = kernel_evidence(documents, loop.kernel.name)
        latency = line_latency(documents, loop.kernel.name, source.path)
        hot = sum(latency.get(line, 0) for line in _lines(loop))
        place = (-(kernel.score or 0.0), -hot, -loop.depth, loop.line)
        rank = _factor_rank(_factor(candidate), kernel.label)
        order = (*place, *rank, candidate.id)
        facts: dict[str, float | str | None] = {
            "critical_path_score": kernel.score,
            "bottleneck": kernel.label,
            "traced_latency_cycles": hot if latency else None,
        }
        gain = None if kernel.score is None else (0.0, min(1.0, max(0.0, kernel.score)))
        ranked.append((order, candidate.id, Evidence(gain, facts)))
    ranked.sort(key=lambda entry: entry[0])
    return {name: attrs.evolve(one, preference=i) for i, (_, name, one) in enumerate(ranked)}


def _loops(source: KernelSource) -> dict[str, SourceLoop]:
    file = read_source_file(source.text)
    kernels = [kernel for kernel in file.kernels if source.kernel in {None, kernel.name}]
    return {loop.id: loop for loop in find_loops(file, kernels)}


def _loop_id(candidate: EditCandidate) -> str:
    return candidate.id.rpartition("-")[0]


def _lines(loop: SourceLoop) -> range:
    return range(loop.node.start_point[0] + 1, loop.node.end_point[0] + 2)


def _factor(candidate: EditCandidate) -> int:
    digits = candidate.id[len(candidate.id.rstrip("0123456789")) :]
    return int(digits)


def _factor_rank(factor: int, label: str | None) -> tuple[int, int]:
    if label in _LARGE_FIRST:
        return (0, -factor)
    if label in _SMALL_FIRST:
        return (0, factor)
    return (abs(factor - _USUAL), factor)


def kernel_evidence(documents: Mapping[str, Any], kernel: str) -> KernelEvidence:
    """Evidence for the source kernel ``kernel``; of several instances the one with the largest score."""
    entries = [e for e in _entries(documents, "analysis") if _is_instance(str(e.get("kernel")), kernel)]
    scored = [e for e in entries if isinstance(e.get("critical_path_score"), (int, float))]
    if scored:
        best = max(scored, key=lambda entry: float(entry["critical_path_score"]))
        return KernelEvidence(float(best["critical_path_score"]), _text(best.get("bottleneck")))
    return KernelEvidence(None, _text(entries[0].get("bottleneck")) if entries else None)


def line_latency(documents: Mapping[str, Any], kernel: str, path: str) -> dict[int, int]:
    """Source line -> cycles that traced waves spent there, as plugins wrote it into ``profile.json``.

    Empty when nothing was traced or when the program was built without line tables. Lines are matched by the
    file's name: the compiler records paths of the machine that it ran on.
    """
    latencies: dict[int, int] = {}
    for entry in _entries(documents, "profile"):
        if not _is_instance(str(entry.get("name")), kernel):
            continue
        for place, cycles in hot_lines(entry):
            file, _, line = place.rpartition(":")
            if line.isdecimal() and PurePath(file).name == PurePath(path).name:
                latencies[int(line)] = latencies.get(int(line), 0) + cycles
    return latencies


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
