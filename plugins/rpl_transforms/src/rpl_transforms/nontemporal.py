"""Stores past the caches, where a kernel only hands results out through a pointer."""

from __future__ import annotations

from collections.abc import Iterator

from rpl_core.text import counted
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    StreamedStores,
)
from rpl_transforms.evidence import KernelFacts, streaming_evidence
from rpl_transforms.promises import HEADERS, UNREAD, KernelTransformation, refused
from rpl_transforms.source_file import KernelNode, SourceFile
from rpl_transforms.vector_loads import names_free

_BUILTIN = "__builtin_nontemporal_store"


class NontemporalStores(KernelTransformation):
    """All of a kernel's stores to parameters that it only stores to. A hint: the value stored is the same.

    So it is for whoever includes a header, whatever that makes of its templates.
    """

    suffixes = (*KernelTransformation.suffixes, *HEADERS)
    name = "nontemporal-stores"
    summary = "Store results that the kernel does not read again past the caches."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        _ = file
        stores = UNREAD if source.reading is None else source.reading.streamed_stores(kernel.name)
        if isinstance(stores, str):
            yield refused(kernel, "only-stored", stores, f"store past the caches in {kernel.name}")
            return
        guards = (
            GuardVerdict("only-stored", True, "the kernel does nothing else with what it stores to"),
            names_free(source.reading, _BUILTIN, set(), ""),
        )
        edits = []
        for store in stores:
            target = source.text[store.begin : store.target_end]
            value = source.text[store.value_begin : store.end]
            between = source.text[store.target_end : store.value_begin].replace(b"=", b"", 1)
            new = b"%s(%s,%s&%s)" % (_BUILTIN.encode(), value, between.rstrip(b" ") or b" ", target)
            edits.append(Edit(store.begin, store.end, new))
        allowed = all(guard.passed for guard in guards)
        yield EditCandidate(
            id=kernel.name,
            kernel=kernel.name,
            line=kernel.line,
            summary=f"store past the caches in {kernel.name}: {counted(len(stores), 'store', 'stores')}",
            edits=tuple(edits) if allowed else (),
            guards=guards,
            declares=(StreamedStores(len(stores)),),
        )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return streaming_evidence(facts)
