"""Contracts of what the optimizer asks: transformations, proposers, equivalence checks, metrics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.interfaces.options import Options
from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource, Transformation
from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts.violation import ContractViolation, demand, demand_kind, no_side_effects

if TYPE_CHECKING:
    from rpl_optimize.interfaces.equivalence import EquivalenceCheck, EquivalenceReport, EquivalenceRequest
    from rpl_optimize.interfaces.metric import Metric

    Method = Callable[[KernelSource], tuple[EditCandidate, ...]]


def check_candidate(candidate: EditCandidate, source: KernelSource, subject: str) -> None:
    """Edits lie in the file, do not overlap and change something; refusals say why."""
    subject = f"{subject}, candidate {candidate.id!r}"
    demand(bool(candidate.id) and candidate.id.isprintable(), subject, "id must be printable text")
    demand(bool(candidate.summary.strip()), subject, "summary must say what would change")
    last_line = source.text.count(b"\n") + 1
    demand(1 <= candidate.line <= last_line, subject, f"line {candidate.line} is not in the file")
    demand(source.kernel in {None, candidate.kernel}, subject, f"kernel {source.kernel!r} was asked for")
    for guard in candidate.guards:
        demand(bool(guard.guard), subject, "a guard has a name")
        demand(
            guard.passed or bool(guard.reason.strip()), subject, f"guard {guard.guard} refuses without reason"
        )
    demand(bool(candidate.edits) or not candidate.allowed, subject, "an allowed candidate has edits")
    position = 0
    for edit in sorted(candidate.edits, key=lambda e: (e.begin, e.end)):
        demand(0 <= edit.begin <= edit.end <= len(source.text), subject, f"{edit} leaves the file")
        demand(edit.begin >= position, subject, f"{edit} overlaps the edit before it")
        changes = source.text[edit.begin : edit.end] != edit.replacement
        demand(changes, subject, f"{edit} changes nothing")
        position = max(edit.end, edit.begin + 1)


# Proposers, equivalence checks and metrics.

_COMMAND = ("./app", "--size", "3 4")


def assert_equivalence_check(
    check: EquivalenceCheck, scratch: Path, *, different: EquivalenceRequest | None = None
) -> None:
    """Two empty builds must be ``not_run``; ``different``, two builds that differ, must not be equal."""
    from rpl_optimize.interfaces.equivalence import EquivalenceRequest, EquivalenceVerdict

    subject = demand_kind("rpl_equivalence_checks", check)
    folders = [scratch / "empty-baseline", scratch / "empty-candidate"]
    for folder in folders:
        folder.mkdir()
    nothing = _verdict(check, EquivalenceRequest(folders[0], folders[1], ("./no-such-program",)), subject)
    demand(
        nothing.verdict is EquivalenceVerdict.NOT_RUN,
        subject,
        f"two empty builds are not_run, not {nothing.verdict.value}",
    )
    if different is not None:
        verdict = _verdict(check, different, subject).verdict
        demand(verdict is not EquivalenceVerdict.EQUAL, subject, "calls two different programs equal")


def _verdict(check: EquivalenceCheck, request: EquivalenceRequest, subject: str) -> EquivalenceReport:
    from rpl_optimize.interfaces.equivalence import EquivalenceReport, EquivalenceVerdict

    report = check.check(request)
    demand(isinstance(report, EquivalenceReport), subject, "check() returns an EquivalenceReport")
    demand(isinstance(report.verdict, EquivalenceVerdict), subject, "the verdict is an EquivalenceVerdict")
    demand(bool(report.evidence.strip()), subject, "a verdict comes with its evidence")
    crashed_only = not report.crashed or report.verdict is EquivalenceVerdict.DIFFERENT
    demand(crashed_only, subject, "crashed explains a verdict of different, and no other")
    return report


def assert_metric(metric: Metric) -> None:
    """Without running anything: what it says of itself, and the words that it would run."""
    subject = demand_kind("rpl_metrics", metric)
    demand(bool(metric.devices), subject, "a metric names the devices that it is for")
    for what in ("unit", "formula", "architecture"):
        demand(bool(str(getattr(metric, what)).strip()), subject, f"a metric says its {what}")
    words = metric.command(_COMMAND, Options())
    demand(words[-len(_COMMAND) :] == _COMMAND, subject, "command() ends with the user's own words")


def assert_proposer(proposer: Proposer, request: ProposalRequest, *, deterministic: bool = True) -> None:
    """Check one proposal; ``deterministic=False`` for proposers that ask a language model."""
    from rpl_optimize.interfaces.transformation import EditCandidate

    subject = demand_kind("rpl_proposers", proposer)
    first = proposer.propose(request)
    demand(
        first is None or isinstance(first, EditCandidate), subject, "propose() returns a candidate or None"
    )
    if first is not None:
        check_candidate(first, request.source, subject)
    if deterministic:
        demand(proposer.propose(request) == first, subject, "the same request gives two different proposals")


# The contract of a transformation: proposals depend on the source alone and fit into it.
#
# So do the controls that it may offer.

_NAMES = {"empty", "broken"}


_STRANGE_TEXTS = (
    b"",
    b"\n",
    bytes(range(256)),
    b"__global__",
    b"// only a comment",
    b"\xff" * 100,
    b"{{{((\"'",
)


def assert_transformation(transformation: Transformation, source: KernelSource) -> None:
    """Check proposals for ``source``, which must hold at least one candidate, and for strange files.

    Controls are checked for every kernel that has a candidate.
    """
    subject = demand_kind("rpl_transformations", transformation)
    suffixes = transformation.suffixes
    demand(isinstance(suffixes, tuple) and bool(suffixes), subject, "suffixes is a non-empty tuple")
    demand(all(suffix.startswith(".") for suffix in suffixes), subject, "a suffix begins with a dot")
    candidates = _propose(transformation, source, subject)
    demand(bool(candidates), subject, "the test's source gives no candidate")
    for kernel in sorted({c.kernel for c in candidates if c.kernel is not None}):
        only = _propose(transformation, attrs.evolve(source, kernel=kernel), subject)
        expected = [c.id for c in candidates if c.kernel == kernel]
        demand([c.id for c in only] == expected, subject, f"asked for {kernel!r} it proposes something else")
        check_controls(transformation, attrs.evolve(source, kernel=kernel), subject)
    for text in _STRANGE_TEXTS:
        _propose(transformation, attrs.evolve(source, text=text), subject)
        check_controls(transformation, attrs.evolve(source, text=text, kernel="k"), subject)
    unknown = attrs.evolve(source, kernel="no such kernel")
    demand(
        not _propose(transformation, unknown, subject), subject, "proposes for a kernel that does not exist"
    )
    controls = check_controls(transformation, unknown, subject)
    demand(not controls, subject, "makes controls for a kernel that does not exist")


def _propose(transformation: Transformation, source: KernelSource, subject: str) -> tuple[EditCandidate, ...]:
    first = asked_twice(transformation.propose, "propose", source, subject, "answers")
    ids = [candidate.id for candidate in first]
    demand(len(set(ids)) == len(ids), subject, f"candidate ids repeat: {ids}")
    for candidate in first:
        check_candidate(candidate, source, subject)
    return first


def check_controls(
    transformation: Transformation, source: KernelSource, subject: str
) -> tuple[EditCandidate, ...]:
    """Their ids, that they fit ``source`` and differ, and that the kernel is still found in them."""
    controls = _controls(transformation, source, subject)
    ids = [control.id for control in controls]
    demand(len(set(ids)) == len(ids) and set(ids) <= _NAMES, subject, f"controls are empty and broken: {ids}")
    texts = set()
    for control in controls:
        check_candidate(control, source, subject)
        demand(control.allowed, subject, f"the control {control.id} is refused by a guard")
        text = apply_edits(source.text, control.edits)
        texts.add(text)
        kept = (source.kernel or "").encode() in text
        demand(kept, subject, f"the control {control.id} has lost kernel {source.kernel!r}")
        transformation.propose(attrs.evolve(source, text=text))
    demand(len(texts) == len(controls), subject, "the controls empty and broken are the same program")
    return controls


def _controls(
    transformation: Transformation, source: KernelSource, subject: str
) -> tuple[EditCandidate, ...]:
    return asked_twice(transformation.controls, "controls", source, subject, "controls")


def asked_twice(
    method: Method, name: str, source: KernelSource, subject: str, answers: str
) -> tuple[EditCandidate, ...]:
    """The tuple that ``method`` gives both times; ``name`` and ``answers`` are for the messages."""
    try:
        method(source)  # imports what it needs before files are forbidden
        with no_side_effects(subject):
            first = method(source)
            second = method(source)
    except ContractViolation:
        raise
    except Exception as error:
        raise ContractViolation(f"{subject}: {name}() raised {error!r} for {source.text[:40]!r}") from error
    demand(isinstance(first, tuple), subject, f"{name}() returns a tuple")
    demand(first == second, subject, f"the same source gives two different {answers}")
    return first
