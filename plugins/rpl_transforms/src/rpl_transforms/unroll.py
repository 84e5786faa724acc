"""The transformation ``unroll``: a hint for the compiler before every loop that policy offers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import attrs

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    LoopHints,
    Screening,
    Transformation,
)
from rpl_transforms.controls import controls_of
from rpl_transforms.evidence import hot_lines
from rpl_transforms.loops import Policy, SourceLoop, accepted_hint, find_loops
from rpl_transforms.promises import HEADERS, KernelTransformation
from rpl_transforms.resource_screen import ScreenOfSource
from rpl_transforms.source_file import SourceFile, read_source_file

# What a run's documents say for unrolling: weight and label of kernels, hot lines, device; and the order.

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


SMALLEST_FACTOR, LARGEST_FACTOR = 2, 8
_USUAL_FACTORS = (2, 4, 8)


class Unroll(Transformation):
    """Ask the compiler to unroll one innermost loop by 2 to 8.

    The hint stands on the line of its loop, so that no line moves; what it means is the compiler's guarantee.
    A loop that policy refuses is listed once, without edits. Whether unrolling helps is for a measurement to
    say, and whether the registers suffice for the compiled code.
    """

    name = "unroll"
    summary = "Have the compiler unroll one innermost loop of a kernel by 2 to 8."
    suffixes = (*KernelTransformation.suffixes, *HEADERS)

    def __init__(self, screens: ScreenOfSource | None = None) -> None:
        self._screens = screens or ScreenOfSource()

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        file = read_source_file(source.text)
        policy = Policy(file)
        kernels = [kernel for kernel in file.kernels if source.kernel in {None, kernel.name}]
        loops = find_loops(file, kernels)
        return tuple(one for loop in loops for one in _candidates(file, loop, policy.verdicts(loop)))

    def controls(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        return controls_of(source)

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        return unroll_evidence(source, candidates, documents)

    def screen(
        self, source: KernelSource, candidate: EditCandidate, documents: Mapping[str, Any]
    ) -> Screening:
        """Compiled on its own: what the build would refuse costs no trial."""
        return self._screens.screen(source, candidate, documents)


def factors_for(runs: int | None) -> tuple[int, ...]:
    """2, 4, 8; where the head says how often the loop runs, its divisors too, and none above."""
    factors = set(_USUAL_FACTORS)
    if runs is not None:
        factors |= {factor for factor in range(SMALLEST_FACTOR, LARGEST_FACTOR + 1) if runs % factor == 0}
        factors = {factor for factor in factors if factor <= runs}
    return tuple(sorted(factors))


def _candidates(
    file: SourceFile, loop: SourceLoop, verdicts: tuple[GuardVerdict, ...]
) -> tuple[EditCandidate, ...]:
    """All factors of one loop but the one that it has, or the one refused candidate."""
    if not all(verdict.passed for verdict in verdicts):
        summary = f"unroll {loop.kind} loop {loop.id}"
        return (EditCandidate(loop.id, loop.kernel.name, loop.line, summary, (), verdicts),)
    had = accepted_hint(file.text[: loop.node.start_byte]) or b""
    hints = {factor: b'_Pragma("unroll %d") ' % factor for factor in factors_for(loop.runs)}
    return tuple(
        _candidate(loop, factor, hint, had, verdicts) for factor, hint in hints.items() if hint != had
    )


def _candidate(
    loop: SourceLoop, factor: int, hint: bytes, had: bytes, verdicts: tuple[GuardVerdict, ...]
) -> EditCandidate:
    begin = loop.node.start_byte
    return EditCandidate(
        id=f"{loop.id}-pragma{factor}",
        kernel=loop.kernel.name,
        line=loop.line,
        summary=f"unroll loop {loop.id} by {factor}",
        edits=(Edit(begin - len(had), begin, hint),),
        guards=verdicts,
        changes_loop=True,
        declares=(LoopHints(0 if had else 1),),
        alternatives=loop.id,
    )
