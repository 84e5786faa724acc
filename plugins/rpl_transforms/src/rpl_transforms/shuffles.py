"""The last steps of reductions of shared arrays from lane to lane, without a barrier between them.

What the loop has to be is proven by the compiler's tree, and the edit is the one that the proof knows
(``rpl_optimize.source_meaning.reductions``): the same bits in the same array behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rpl_optimize.interfaces.source_reading import TreeReduction
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    ShuffledReduction,
)
from rpl_transforms.evidence import KernelFacts, shuffle_evidence
from rpl_transforms.promises import UNREAD, KernelTransformation, refused
from rpl_transforms.source_file import KernelNode, SourceFile
from rpl_transforms.vector_loads import names_free

#: A word of the new text that headers may define as a macro, since the proof found out what it is here.
_PROVEN = "blockDim"
_DIMENSIONS = frozenset(("x", "y", "z"))


class ShuffledReductions(KernelTransformation):
    """Each loop that halves its work-items down to one; within one wave it needs neither LDS nor barriers."""

    name = "shuffle-reduction"
    summary = "Hand the last steps of a reduction from lane to lane in place of shared memory."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        _ = file
        found = UNREAD if source.reading is None else source.reading.tree_reductions(kernel.name)
        if isinstance(found, str):
            yield refused(kernel, "tree-reduction", found, f"reduce from lane to lane in {kernel.name}")
            return
        for reduction in found:
            yield _candidate(kernel, reduction, source)

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return shuffle_evidence(facts)


def _candidate(kernel: KernelNode, reduction: TreeReduction, source: KernelSource) -> EditCandidate:
    new = b" ".join(text for _, _, text in reduction.edits).decode("utf-8", "replace")
    old = set(re.findall(r"[A-Za-z_]\w*", source.text.decode("utf-8", "replace")))
    own = {word for word in old - _DIMENSIONS if not word.startswith("rpl_")} | {_PROVEN}
    guards = (
        GuardVerdict(
            "tree-reduction", True, "each step works on the pairs that lanes hand over", reduction.line
        ),
        names_free(source.reading, new, own, ""),
    )
    allowed = all(guard.passed for guard in guards)
    return EditCandidate(
        id=f"{kernel.name}-L{reduction.line}",
        kernel=kernel.name,
        line=reduction.line,
        summary=f"reduce {reduction.array} from lane to lane within a wave, in line {reduction.line}",
        edits=tuple(Edit(*one) for one in reduction.edits) if allowed else (),
        guards=guards,
        declares=(ShuffledReduction(reduction.begin),),
    )
