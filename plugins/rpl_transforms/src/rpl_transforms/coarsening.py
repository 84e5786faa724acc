"""More work for each work-item: neighbouring elements by wide accesses, or the work of several blocks.

Launches stay as they are: the rest of the grid has nothing to do and ends at once. Whether that is cheaper
than what is saved, in index arithmetic, arguments and memory instructions, is for the measurement to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_optimize.interfaces.source_reading import ElementWork
from rpl_optimize.interfaces.transformation import (
    DeclaredChange,
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    SeveralBlocks,
)
from rpl_transforms.evidence import KernelFacts, coarsening_evidence, vector_load_evidence
from rpl_transforms.promises import UNREAD, KernelTransformation, refused
from rpl_transforms.source_file import KernelNode, SourceFile
from rpl_transforms.syntax import one_line
from rpl_transforms.vector_loads import names_free

if TYPE_CHECKING:
    from rpl_optimize.interfaces.source_reading import Span

#: What a work-item of gfx942 loads or stores at once (CDNA3 ISA, "Flat Memory Instructions": DWORDX4).
_WIDE_BYTES = 16
#: How many blocks' work one block does (chosen; the candidates of one kernel are alternatives).
_BLOCKS = (2, 4)
_INDICES = frozenset(("blockIdx", "blockDim", "threadIdx", "gridDim", "x"))


class WideElements(KernelTransformation):
    """Work-item i does the elements 4 i to 4 i + 3 of kernels that do element i.

    All loads of the four stand before their stores, so the compiler makes one wide access of each; the
    hardware needs no alignment for it. Elements at the grid's end or beyond the bound are done one by one.
    """

    name = "wide-elements"
    summary = "Have one work-item do neighbouring elements, by wide loads and stores."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        _ = file
        work = UNREAD if source.reading is None else source.reading.element_work(kernel.name)
        if isinstance(work, str):
            yield refused(kernel, "own-element", work, f"do neighbouring elements in {kernel.name}")
            return
        most = max(store.element_bytes for store in work.stores)
        count = _WIDE_BYTES // most
        old, new = work.body.of(source.text), _wide(work, source.text, count)
        guards = (
            GuardVerdict("own-element", True, "each work-item stores at its own index, and does no more"),
            _names_free(source, new, one_line(old)),
        )
        lines = "\n" * old.count(b"\n")  # those behind keep their numbers
        edits = (Edit(work.body.begin, work.body.end, f"{new[:-1]}{lines}}}".encode()),)
        summary = f"do neighbouring elements {count} at a time in {kernel.name}"
        yield _candidate(kernel, kernel.name, summary, edits, guards)

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return vector_load_evidence(facts)


class Coarsening(KernelTransformation):
    """Each of the first blocks does the work of 2 or 4 in turn; the rest of the grid ends at once."""

    name = "coarsening"
    summary = "Have one block do the work of several."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        _ = file
        work = UNREAD if source.reading is None else source.reading.block_work(kernel.name)
        if isinstance(work, str):
            yield refused(kernel, "own-block", work, f"do several blocks' work in {kernel.name}")
            return
        proven = GuardVerdict("own-block", True, "a block's work follows from its index, and nothing is kept")
        # A barrier that headers make a macro of is what the proof found.
        waited = ("__syncthreads",) if work.waits else ()
        for count in _BLOCKS:
            edits = tuple(Edit(*one) for one in work.several(count))
            new = " ".join(edit.replacement.decode() for edit in edits)
            guards = (proven, _names_free(source, new, " ".join((*work.changed, *waited))))
            summary = f"do the work of {count} blocks per block in {kernel.name}"
            declares = (SeveralBlocks(count),)
            yield _candidate(kernel, f"{kernel.name}-{count}", summary, edits, guards, declares)

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return coarsening_evidence(facts)


def _candidate(
    kernel: KernelNode,
    identity: str,
    summary: str,
    edits: tuple[Edit, ...],
    guards: tuple[GuardVerdict, ...],
    declares: tuple[DeclaredChange, ...] = (),
) -> EditCandidate:
    allowed = all(guard.passed for guard in guards)
    return EditCandidate(
        id=identity,
        kernel=kernel.name,
        line=kernel.line,
        summary=summary,
        edits=edits if allowed else (),
        guards=guards,
        alternatives=kernel.name,
        declares=declares,
    )


def _names_free(source: KernelSource, new: str, copied: str) -> GuardVerdict:
    """What is copied means what it meant, and indices are what the reading found them to be."""
    own = {word for word in re.findall(r"[A-Za-z_]\w*", copied) if not word.startswith("rpl_")}
    text = source.text.decode("utf-8", "replace")
    return names_free(source.reading, new, own | _INDICES, text)


def _wide(work: ElementWork, text: bytes, count: int) -> str:
    """The body anew, in one line."""

    def said(span: Span) -> str:
        return one_line(span.of(text))

    # With 32 bits the compiler has to reckon with indices that wrap around between neighbours.
    own = work.index_type
    wide = "unsigned long long" if work.only_subscripts and own.startswith("unsigned") else own

    def element(kind: str, number: str) -> str:
        return f"const {kind} {work.index} = static_cast<{kind}>(rpl_first + {number});"

    condition = "true"
    if work.condition is not None:
        condition = said(work.condition) if work.condition_holds else f"!({said(work.condition)})"
    declared = " ".join(said(span) for span in work.declarations)
    each = f"for (unsigned rpl_k = 0; rpl_k < {count}; ++rpl_k)"
    loads_and_stores = " ".join(
        f"{{ decltype(+{store.pointer}[0]) rpl_v[{count}]; "
        f"{each} {{ {element(wide, 'rpl_k')} {declared} rpl_v[rpl_k] = {said(store.value)}; }} "
        f"{each} {{ {element(wide, 'rpl_k')} {said(store.target)} = rpl_v[rpl_k]; }} }}"
        for store in work.stores
    )
    one_by_one = " ".join(f"{said(store.target)} = {said(store.value)};" for store in work.stores)
    return (
        f"{{ const unsigned long long rpl_all = static_cast<unsigned long long>(gridDim.x) * blockDim.x, "
        f"rpl_first = {count}ull * (blockIdx.x * blockDim.x + threadIdx.x); "
        f"bool rpl_whole = rpl_first + {count} <= rpl_all; "
        f"{{ {element(own, str(count - 1))} rpl_whole = rpl_whole && ({condition}); }} "
        f"if (rpl_whole) {{ {loads_and_stores} }} "
        f"else {each} if (rpl_first + rpl_k < rpl_all) {{ {element(own, 'rpl_k')} "
        f"if ({condition}) {{ {declared} {one_by_one} }} }} }}"
    )
