"""One way to unroll one loop, as the guards on factor and form see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_llm_unroll.loops.view import LoopView

#: ``pragma`` leaves the work to the compiler, ``explicit`` repeats the body in the source.
Form = Literal["pragma", "explicit"]


@frozen(eq=False)
class UnrollRequest:
    view: LoopView
    factor: int
    form: Form
