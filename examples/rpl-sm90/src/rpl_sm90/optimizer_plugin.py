"""What rpl-sm90 offers to the optimizer: a plugin of its own, for where that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import BuildSystem

RPL_API = 2


@hookimpl(optionalhook=True)  # without rpl-optimize nobody asks
def rpl_builders() -> tuple[BuildSystem, ...]:
    from rpl_sm90.builder import NvccBuilds

    return (NvccBuilds(),)
