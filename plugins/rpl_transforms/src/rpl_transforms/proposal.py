"""What the transformations of this distribution share: one parse, and evidence by kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rpl_optimize.interfaces.transformation import Evidence, Transformation
from rpl_transforms.evidence import KernelFacts
from rpl_transforms.syntax import Kernel, Source

if TYPE_CHECKING:
    from rpl_optimize.interfaces.source_reading import SourceReading
    from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource


class KernelTransformation(Transformation):
    """Proposes kernel by kernel."""

    suffixes = (".cu", ".hip", ".cpp", ".cc", ".cxx")

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        file = Source.read(source.text)
        return tuple(
            found
            for kernel in file.kernels(source.kernel)
            for found in self.of_kernel(file, kernel, source.reading)
        )

    @abstractmethod
    def of_kernel(
        self, file: Source, kernel: Kernel, reading: SourceReading | None
    ) -> Iterator[EditCandidate]:
        """Candidates of one kernel, refused ones included."""

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        _ = source
        named = [(c.id, KernelFacts.of(c.kernel, documents)) for c in candidates if c.kernel is not None]
        return {identity: self.evidence_of(facts) for identity, facts in named}

    @abstractmethod
    def evidence_of(self, facts: KernelFacts) -> Evidence:
        """What speaks for this change of a kernel with these facts."""
