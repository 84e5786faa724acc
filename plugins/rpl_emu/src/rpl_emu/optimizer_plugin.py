"""What rpl-emu offers to the optimizer: a plugin of its own, for where that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_optimize.interfaces.metric import Metric

RPL_API = 2


@hookimpl
def rpl_metrics() -> tuple[Metric, ...]:
    from rpl_emu.programs.collector import IssueCycles

    return (IssueCycles(),)
