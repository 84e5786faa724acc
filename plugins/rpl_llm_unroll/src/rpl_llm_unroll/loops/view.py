"""One loop with everything that guards and edits ask about it, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.loops.counted import Counted, NotCounted, counted_form
from rpl_llm_unroll.loops.reach import Mention, mentions_of
from rpl_llm_unroll.loops.source_loop import SourceLoop, find_loops
from rpl_llm_unroll.syntax.constants import Constants
from rpl_llm_unroll.syntax.declarations import Declared, declared_names

if TYPE_CHECKING:
    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_llm_unroll.syntax.source_file import SourceFile


#: More runs than any 32-bit counter can make without wrapping are not a trip count.
_MOST = (1 << 31) - 1


@frozen
class TripCount:
    """``runs`` iterations, the counter starting at ``first``."""

    runs: int
    first: int


def trip_count(form: Counted, constants: Constants) -> TripCount | None:
    """The constant trip count, or ``None`` when start, bound or step is not a known constant.

    ``i < b``: ceil((b - a) / s) runs, ``i <= b``: floor((b - a) / s) + 1, mirrored downwards; ``!=`` only
    when the step reaches the bound exactly, since otherwise the counter runs past it and wraps.
    """
    first, bound, step = constants.value(form.start), constants.value(form.bound), form.step
    if first is None or bound is None or step is None:
        return None
    if form.type_text.startswith(("unsigned", "size_t", "uint", "std::size_t", "std::uint")):
        # Downwards past zero an unsigned counter wraps: `i >= 0` never ends.
        if first < 0 or bound < 0 or (form.relation == ">=" and bound < abs(step)):
            return None
        if form.relation == ">" and step < -1 and bound < abs(step) - 1:
            return None
    distance = (bound - first) if step > 0 else (first - bound)
    size = abs(step)
    if form.relation == "!=":
        runs = distance // size if distance >= 0 and distance % size == 0 else None
    elif form.relation in {"<", ">"}:
        runs = max(0, -(-distance // size))
    else:
        runs = max(0, distance // size + 1)
    if runs is None or runs > _MOST or abs(first + runs * step) > _MOST:
        return None
    return TripCount(runs, first)


@frozen(eq=False)
class LoopView:
    """``declared`` holds what kernel and file scope declare; ``trips`` is ``None`` when not constant."""

    file: SourceFile
    loop: SourceLoop
    form: Counted | NotCounted
    trips: TripCount | None
    mentions: tuple[Mention, ...]
    declared: tuple[Declared, ...]

    @property
    def kernel(self) -> KernelNode:
        return self.loop.kernel


def view_loops(file: SourceFile, kernel: KernelNode) -> tuple[LoopView, ...]:
    """Every loop of one kernel, in source order."""
    declared = (*declared_names(kernel.outer), *file.declared)
    constants = Constants(file.macros, declared)
    return tuple(_view(file, loop, constants, declared) for loop in find_loops(kernel))


def _view(
    file: SourceFile, loop: SourceLoop, constants: Constants, declared: tuple[Declared, ...]
) -> LoopView:
    form = counted_form(loop, constants)
    trips = trip_count(form, constants) if isinstance(form, Counted) else None
    return LoopView(file, loop, form, trips, mentions_of(loop, file), declared)
