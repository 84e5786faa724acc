"""What this distribution offers to rpl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_autotune.interfaces import Strategy

RPL_API = 2


@hookimpl
def rpl_strategies() -> tuple[Strategy, ...]:
    from rpl_annealing.annealing import Annealing

    return (Annealing(),)
