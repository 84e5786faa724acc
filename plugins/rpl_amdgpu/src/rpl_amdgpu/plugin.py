"""AMD architectures for rpl: occupancy limits, rates and quirks of records, without any product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.model.architecture import Architecture

RPL_API = 1


@hookimpl
def rpl_architectures() -> tuple[Architecture, ...]:
    from rpl_amdgpu.architectures import ARCHITECTURES

    return ARCHITECTURES
