"""What this distribution offers to rpl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_optimize.interfaces.transformation import Transformation

RPL_API = 2


@hookimpl
def rpl_transformations() -> tuple[Transformation, ...]:
    from rpl_launch_bounds.transformation import LaunchBounds

    return (LaunchBounds(),)
