"""torch.profiler traces for rpl: their reader, the analysis per operator, and where people see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.reader import Reader

RPL_API = 1


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_torch.reader import TorchReader

    return (TorchReader(),)
