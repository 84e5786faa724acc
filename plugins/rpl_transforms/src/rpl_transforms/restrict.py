"""``__restrict__`` on pointer parameters, where the user has said that they point to different memory.

No compiler tells whether two parameters of a kernel alias: that is the caller's secret. So the user's word is
asked for, per kernel, and nothing is proposed without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_optimize.interfaces.declared_change import RestrictedParameter
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, GuardVerdict
from rpl_transforms.evidence import restrict_evidence
from rpl_transforms.proposal import KernelTransformation
from rpl_transforms.syntax import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_optimize.interfaces.source_reading import SourceReading
    from rpl_optimize.interfaces.transformation import Evidence
    from rpl_transforms.evidence import KernelFacts
    from rpl_transforms.syntax import Kernel, Source

SETTING = "plugins.transforms.distinct-pointers"


class Restrict(KernelTransformation):
    """``distinct``: kernels of which the user says that their pointers never overlap; ``*``: all."""

    name = "restrict"
    summary = "Add __restrict__ to all pointers of kernels whose pointers the user calls distinct."

    def __init__(self, distinct: frozenset[str] = frozenset()) -> None:
        self._distinct = distinct

    def of_kernel(
        self, file: Source, kernel: Kernel, reading: SourceReading | None
    ) -> Iterator[EditCandidate]:
        _ = (file, reading)
        pointers = [pointer for node in kernel.parameters() if (pointer := _pointer(node)) is not None]
        open_ones = [(name, place) for name, place, restricted in pointers if not restricted]
        if len(pointers) < 2 or not open_ones:
            return
        said = bool({kernel.name, "*"} & self._distinct)
        reason = "the user says so" if said else f"only the user knows; say it by the setting {SETTING}"
        names = ", ".join(name for name, _ in open_ones)
        yield EditCandidate(
            id=kernel.name,
            kernel=kernel.name,
            line=kernel.line,
            summary=f"restrict the pointers of {kernel.name}: {names}",
            edits=tuple(Edit(place, place, b"__restrict__ ") for _, place in open_ones) if said else (),
            guards=(GuardVerdict("distinct-pointers", said, reason),),
            declares=tuple(RestrictedParameter(name) for name, _ in open_ones),
        )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return restrict_evidence(facts)


def _pointer(parameter: Node) -> tuple[str, int, bool] | None:
    """Name of a pointer parameter, the byte where its name begins, and whether it is restricted."""
    node = parameter.child_by_field_name("declarator")
    if node is None or node.type != "pointer_declarator":
        return None
    name = node.child_by_field_name("declarator")
    if name is None or name.type != "identifier":
        return None
    return text_of(name), name.start_byte, "restrict" in text_of(node)
