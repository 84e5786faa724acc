"""The contract of a transformation: proposals depend on the source alone and fit into it.

So do the controls that it may offer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts.edits import check_candidate
from rpl_testkit.contracts.side_effects import no_side_effects
from rpl_testkit.contracts.violation import ContractViolation, demand, demand_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource, Transformation

    Method = Callable[[KernelSource], tuple[EditCandidate, ...]]

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
