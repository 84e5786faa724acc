"""One loop with everything that guards and edits ask about it, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_llm_unroll.loops.counted import Counted, NotCounted, counted_form
from rpl_llm_unroll.loops.reach import Mention, mentions_of
from rpl_llm_unroll.loops.source_loop import SourceLoop, find_loops
from rpl_llm_unroll.loops.trip_count import TripCount, trip_count
from rpl_llm_unroll.syntax.constants import Constants
from rpl_llm_unroll.syntax.declarations import Declared, declared_names

if TYPE_CHECKING:
    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_llm_unroll.syntax.source_file import SourceFile


@attrs.frozen(eq=False)
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
