"""The transformation: one candidate per kernel definition without launch bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_launch_bounds.block_size import threads_per_block
from rpl_launch_bounds.evidence import evidence_for
from rpl_launch_bounds.guards import (
    launched_here_only,
    only_inserts,
    only_launched,
    sizes_known,
    within_limit,
)
from rpl_launch_bounds.kernels import Kernel, find_kernels
from rpl_launch_bounds.launches import find_uses
from rpl_launch_bounds.source_mask import code_only, without_comments
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, Transformation
from rpl_optimize.interfaces.transformation import LaunchBounds as DeclaredBounds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rpl_optimize.interfaces.transformation import Evidence, GuardVerdict, KernelSource


class LaunchBounds(Transformation):
    """Promise the compiler the largest block size that the file launches.

    Without the promise it must expect 1024 threads per block, which limits the registers of a thread.
    Whether the promise helps is for a measurement to say.
    """

    name = "launch-bounds"
    summary = "Add __launch_bounds__(N) to kernels whose largest block size is known."
    suffixes = (".cu", ".hip", ".cpp", ".cc", ".cxx")

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        code = code_only(source.text)
        kernels = [k for k in find_kernels(code) if not k.bounded and source.kernel in {None, k.name}]
        names = [kernel.name for kernel in kernels]
        # Overloads share a name, and a launch does not say which one it means.
        return tuple(_candidate(source, code, k) for k in kernels if names.count(k.name) == 1)

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        _ = source
        return {c.id: evidence_for(c.kernel, documents) for c in candidates if c.kernel is not None}

    def invariance(self, source: KernelSource, after: bytes) -> tuple[GuardVerdict, ...]:
        return (only_inserts(source.text, after),)


def _candidate(source: KernelSource, code: bytes, kernel: Kernel) -> EditCandidate:
    with_directives = without_comments(source.text)
    uses = find_uses(code, with_directives, kernel.name, kernel.name_offset)
    sizes = tuple(threads_per_block(use.block, code, with_directives) if use.block else None for use in uses)
    known = [size for size in sizes if size is not None]
    guards: tuple[GuardVerdict, ...] = (
        only_launched(uses),
        sizes_known(uses, sizes),
        launched_here_only(kernel, code),
    )
    if not known:
        return EditCandidate(
            kernel.name, kernel.name, kernel.line, "launch bounds of unknown size", (), guards
        )
    bound = f"__launch_bounds__({max(known)})"
    return EditCandidate(
        id=f"{kernel.name}-{max(known)}",
        kernel=kernel.name,
        line=kernel.line,
        summary=f"add {bound}",
        edits=(Edit(kernel.name_offset, kernel.name_offset, f"{bound} ".encode()),),
        guards=(*guards, within_limit(max(known))),
        workgroup_limit=max(known),
        declares=(DeclaredBounds(max(known)),),
    )
