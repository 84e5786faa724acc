"""What the controls of a transformation must satisfy: wrong versions of one kernel, and of nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_optimize.transform.edits import apply_edits
from rpl_testkit.contracts.asked_twice import asked_twice
from rpl_testkit.contracts.edits import check_candidate
from rpl_testkit.contracts.violation import demand

if TYPE_CHECKING:
    from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource, Transformation

_NAMES = {"empty", "broken"}


def check_controls(
    transformation: Transformation, source: KernelSource, subject: str
) -> tuple[EditCandidate, ...]:
    """Their ids, that they fit ``source`` and differ, and that the kernel is still found in them."""
    found = _controls(transformation, source, subject)
    ids = [control.id for control in found]
    demand(len(set(ids)) == len(ids) and set(ids) <= _NAMES, subject, f"controls are empty and broken: {ids}")
    texts = set()
    for control in found:
        check_candidate(control, source, subject)
        demand(control.allowed, subject, f"the control {control.id} is refused by a guard")
        text = apply_edits(source.text, control.edits)
        texts.add(text)
        kept = (source.kernel or "").encode() in text
        demand(kept, subject, f"the control {control.id} has lost kernel {source.kernel!r}")
        transformation.propose(attrs.evolve(source, text=text))
    demand(len(texts) == len(found), subject, "the controls empty and broken are the same program")
    return found


def _controls(
    transformation: Transformation, source: KernelSource, subject: str
) -> tuple[EditCandidate, ...]:
    return asked_twice(transformation.controls, "controls", source, subject, "controls")
