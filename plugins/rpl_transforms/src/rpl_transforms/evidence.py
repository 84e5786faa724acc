"""What the documents of a run say for each change, as named facts and as a bound of what it may gain.

A change can give back no more than the kernel's share of the critical path, and nothing where the facts say
that what it mends does not limit the kernel. That is all that is claimed: whether it gains is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rpl_analysis.interfaces import Comparison, Condition, Rule
from rpl_codeobject.kernel_names import is_instance
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_optimize.interfaces.transformation import Evidence


BANK_CONFLICTS = "lds_bank_conflicts_per_access"
#: Puts the measured conflicts into ``analysis.json``; the weakest of all rules, so that it decides no label
#: that another one can.
BANK_CONFLICT_RULE = Rule(
    id="lds-bank-conflicts",
    label="transforms:lds_bank_conflicts",
    priority=-1000,
    conditions=(Condition(BANK_CONFLICTS, Comparison.AT_LEAST, 0.1, "chosen"),),
    explanation="Accesses to shared memory wait for banks that other lanes use.",
)
_MEMORY = frozenset(("memory_bandwidth_bound", "latency_bound"))
_FEW_WAVES = frozenset(("latency_bound", "under_occupied", "memory_bandwidth_bound"))
_FEW_INSTRUCTIONS = frozenset(("latency_bound",))
_BARRIERS = frozenset(("latency_bound", "under_occupied"))


@frozen
class KernelFacts:
    """``None`` where no document has it. ``score`` is the share of the critical path."""

    score: float | None = None
    bottleneck: str | None = None
    scratch_bytes: float | None = None
    occupancy_limiter: str | None = None
    bank_conflicts: float | None = None

    @classmethod
    def of(cls, kernel: str, documents: Mapping[str, Any]) -> KernelFacts:
        """Of several instances of a template the one with the largest share."""
        analysed = list(_entries_of(documents, "analysis", "kernel", kernel))
        profiled = list(_entries_of(documents, "profile", "name", kernel))
        best = max(analysed, key=lambda entry: _number(entry.get("critical_path_score")) or 0.0, default={})
        scratch = [_number((entry.get("resources") or {}).get("scratch_bytes")) for entry in profiled]
        limiters = [(entry.get("occupancy") or {}).get("limiter") for entry in profiled]
        return cls(
            score=_number(best.get("critical_path_score")),
            bottleneck=best.get("bottleneck"),
            scratch_bytes=max((value for value in scratch if value is not None), default=None),
            occupancy_limiter=next((str(limiter) for limiter in limiters if limiter), None),
            bank_conflicts=_conflicts(best),
        )

    @property
    def share(self) -> float | None:
        return None if self.score is None else min(1.0, max(0.0, self.score))


def launch_bounds_evidence(facts: KernelFacts) -> Evidence:
    """More registers help a kernel that spills them to scratch memory, and no other."""
    return _evidence(
        facts, None if facts.scratch_bytes is None else float(facts.scratch_bytes > 0), "scratch_bytes"
    )


def waves_evidence(facts: KernelFacts) -> Evidence:
    """More waves help a kernel that waits or has too few of them, if registers are what limits them."""
    limiter, bottleneck = facts.occupancy_limiter, facts.bottleneck
    known = limiter is not None and bottleneck is not None
    part = float(limiter == "vgpr" and bottleneck in _FEW_WAVES) if known else None
    return _evidence(facts, part, "occupancy_limiter")


def restrict_evidence(facts: KernelFacts) -> Evidence:
    """Loads that move before stores help a kernel that waits for memory."""
    return _evidence(facts, _waits_for_memory(facts), "bottleneck")


def vector_load_evidence(facts: KernelFacts) -> Evidence:
    """Fewer and wider loads help a kernel that waits for memory."""
    return _evidence(facts, _waits_for_memory(facts), "bottleneck")


def streaming_evidence(facts: KernelFacts) -> Evidence:
    """Results that nobody reads again soon need no place in the caches of a kernel that waits for memory."""
    return _evidence(facts, _waits_for_memory(facts), "bottleneck")


def coarsening_evidence(facts: KernelFacts) -> Evidence:
    """Arguments and indices come once for several blocks, which helps a kernel that waits for them."""
    part = None if facts.bottleneck is None else float(facts.bottleneck in _FEW_INSTRUCTIONS)
    return _evidence(facts, part, "bottleneck")


def shuffle_evidence(facts: KernelFacts) -> Evidence:
    """Fewer barriers help a kernel that waits, or has too few waves to do something else meanwhile."""
    part = None if facts.bottleneck is None else float(facts.bottleneck in _BARRIERS)
    return _evidence(facts, part, "bottleneck")


def padding_evidence(facts: KernelFacts) -> Evidence:
    """At most the part of the accesses' cycles that wait for banks: c conflict cycles per cycle without."""
    conflicts = facts.bank_conflicts
    part = None if conflicts is None else conflicts / (1 + conflicts)
    return _evidence(facts, part, "bank_conflicts")


def _waits_for_memory(facts: KernelFacts) -> float | None:
    return None if facts.bottleneck is None else float(facts.bottleneck in _MEMORY)


def _evidence(facts: KernelFacts, part: float | None, named: str) -> Evidence:
    """``part`` of the kernel's share may be gained; unknown facts bound nothing, and expect nothing."""
    from rpl_optimize.interfaces.transformation import Evidence

    most = None if facts.share is None or part is None else facts.share * part
    told = {"critical_path_score": facts.score, named: getattr(facts, named)}
    return Evidence(None if most is None else (0.0, most), told)


def _conflicts(entry: Mapping[str, Any]) -> float | None:
    rules = (*(entry.get("evidence") or ()), *(entry.get("near_misses") or ()))
    conditions = (condition for rule in rules for condition in rule.get("conditions") or ())
    values = (_number(one.get("value")) for one in conditions if one.get("quantity") == BANK_CONFLICTS)
    return next((max(0.0, value) for value in values if value is not None), None)


def _entries_of(
    documents: Mapping[str, Any], name: str, key: str, kernel: str
) -> Iterator[Mapping[str, Any]]:
    for entry in (documents.get(name) or {}).get("kernels") or ():
        if is_instance(str(entry.get(key)), kernel):
            yield entry


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


# Where the time of a kernel went, in rows that any plugin may have added to its entry of ``profile.json``.
#
# Whatever block of the entry has them, ``hot_lines`` are rows with ``source`` ("file:line") and
# ``latency``, ``hot_instructions`` rows with ``isa``, ``latency`` and ``idle``, in cycles. What else such a
# block holds matters to its plugin only.


def hot_lines(entry: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Lines of source with the cycles that waves spent there."""
    for row in _hot_rows(entry, "hot_lines"):
        yield str(row.get("source")), _cycles(row.get("latency"))


def hot_instructions(entry: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Texts of instructions with the cycles that waves spent there, idle ones included."""
    for row in _hot_rows(entry, "hot_instructions"):
        yield str(row.get("isa")), _cycles(row.get("latency")) + _cycles(row.get("idle"))


def _hot_rows(entry: Mapping[str, Any], field: str) -> Iterator[Mapping[str, Any]]:
    """The blocks are checked by nobody but their plugins, and documents may come from anywhere."""
    for block in entry.values():
        rows = block.get(field) if isinstance(block, Mapping) else None
        if isinstance(rows, (list, tuple)):
            yield from (row for row in rows if isinstance(row, Mapping))


def _cycles(value: object) -> int:
    return value if isinstance(value, int) else 0
