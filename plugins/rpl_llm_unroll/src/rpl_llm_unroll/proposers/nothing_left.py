"""Why the deterministic proposer has nothing left for a kernel, as lines for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.loops.view import view_loops
from rpl_llm_unroll.syntax.source_file import read_source_file
from rpl_llm_unroll.transformation import candidates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_core.interfaces.proposer import ProposalRequest
    from rpl_core.interfaces.transformation import EditCandidate

#: A kernel with more refused loops has the rest counted; `rpl transform` lists them all.
_MOST_LOOPS = 5


def why_nothing_is_left(request: ProposalRequest, screened_out: Iterable[EditCandidate]) -> Iterator[str]:
    """One line per loop that a guard refuses and per candidate that the screen refused."""
    kernel = request.source.kernel
    name = "the file" if kernel is None else kernel
    refused = [candidate for candidate in _proposed(request) if not candidate.allowed]
    lines = [_refusal(candidate) for candidate in (*refused, *screened_out)]
    tried = len(request.attempts)
    if not lines and not tried:
        yield f"deterministic: {name} has no loop that could be unrolled"
        return
    yield f"deterministic: nothing {'left ' if tried else ''}to try for {name}" + (":" if lines else "")
    for line in lines[:_MOST_LOOPS]:
        yield f"  {line}"
    if len(lines) > _MOST_LOOPS:
        yield f"  and {len(lines) - _MOST_LOOPS} more; `rpl transform` lists those of the source"


def _proposed(request: ProposalRequest) -> Iterator[EditCandidate]:
    file = read_source_file(request.source.text)
    for kernel in file.kernels:
        if request.source.kernel in {None, kernel.name}:
            for view in view_loops(file, kernel):
                yield from candidates_of(view)


def _refusal(candidate: EditCandidate) -> str:
    guard = next(g for g in candidate.guards if not g.passed)
    line = candidate.line if guard.line is None else guard.line
    return f"{candidate.summary}: guard {guard.guard}, line {line}: {guard.reason}"
