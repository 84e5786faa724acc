"""All guards before compiling, in the order in which their verdicts are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rpl_llm_unroll.guards import control, directives, hidden_writes, memory, shape, synchronisation
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from rpl_llm_unroll.guards.request import UnrollRequest
    from rpl_llm_unroll.loops.view import LoopView

#: Guards that judge the loop whatever the factor.
LOOP_GUARDS: tuple[Callable[[LoopView], GuardVerdict], ...] = (
    shape.parsed,
    shape.counted,
    shape.innermost,
    directives.own_pragma,
    directives.conditional_code,
    directives.position_macros,
    directives.line_continuation,
    hidden_writes.hidden_writes,
    control.early_exit,
    control.inline_assembly,
    control.unseen_call,
    synchronisation.barrier,
    synchronisation.fence,
    synchronisation.atomic,
    synchronisation.wave_size,
    memory.dynamic_lds,
    memory.volatile,
    memory.static_storage,
)
#: Guards that judge one factor in one form.
FACTOR_GUARDS: tuple[Callable[[UnrollRequest], GuardVerdict], ...] = (
    shape.enough_iterations,
    synchronisation.cross_lane,
    shape.pragma_form,
    shape.explicit_form,
)


def loop_verdicts(view: LoopView) -> tuple[GuardVerdict, ...]:
    return tuple(guard(view) for guard in LOOP_GUARDS)


def factor_verdicts(request: UnrollRequest) -> tuple[GuardVerdict, ...]:
    return tuple(guard(request) for guard in FACTOR_GUARDS)
