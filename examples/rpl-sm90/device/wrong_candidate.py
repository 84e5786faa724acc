"""A plugin that offers one edit which computes something else, to see that ``rpl optimize`` rejects it.

It claims the largest gain, so it is tried first. What it changes are values alone: nothing that a compiler or
a guard could see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rpl_core import hookimpl
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    Transformation,
)

RPL_API = 2
#: Kernel -> what stands in it, and what is wrong instead of it.
_WRONG = {
    "transpose": (b"tile[threadIdx.x][threadIdx.y + row];", b"tile[threadIdx.y + row][threadIdx.x];"),
    "luminance": (b"0.0722f * blue) * cover", b"0.0722f * blue)"),
    "nbody": (b"mass[i] * inverse * inverse * inverse", b"mass[i] * inverse * inverse"),
}


class WrongCandidate(Transformation):
    name = "wrong"
    summary = "Compute something else, faster."

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        found = []
        for kernel, (right, wrong) in _WRONG.items():
            begin = source.text.find(right)
            if begin >= 0 and source.kernel in (None, kernel):
                line = source.text.count(b"\n", 0, begin) + 1
                guards = (GuardVerdict("none", True, "nobody looks at it"),)
                edit = Edit(begin, begin + len(right), wrong)
                summary = f"compute something else in {kernel}"
                found.append(EditCandidate(kernel, kernel, line, summary, (edit,), guards))
        return tuple(found)

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        _ = (source, documents)
        return {candidate.id: Evidence((0.9, 0.9)) for candidate in candidates}


@hookimpl
def rpl_transformations() -> tuple[Transformation, ...]:
    return (WrongCandidate(),)
