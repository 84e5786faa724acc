"""What rpl-emu offers to the optimizer, which need not be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_optimize.interfaces.metric import Metric

RPL_API = 2


@hookimpl(optionalhook=True)  # without rpl-optimize nobody asks
def rpl_metrics() -> tuple[Metric, ...]:
    from rpl_emu.issue_cycles import IssueCycles

    return (IssueCycles(),)
