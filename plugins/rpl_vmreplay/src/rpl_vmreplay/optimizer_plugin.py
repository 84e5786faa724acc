"""What rpl-vmreplay offers to the optimizer, which need not be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.options import CommandOption
    from rpl_optimize.interfaces.equivalence import EquivalenceCheck

RPL_API = 2


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_vmreplay.compare.optimizer_options import (
        CAPTURE,
        SANITIZE,
        VARY_INPUTS,
        VARY_SECONDS,
    )

    return (CAPTURE, SANITIZE, VARY_INPUTS, VARY_SECONDS)


@hookimpl(optionalhook=True)  # without rpl-optimize nobody asks
def rpl_equivalence_checks() -> tuple[EquivalenceCheck, ...]:
    from rpl_vmreplay.optimizer_checks import CapturedLaunchCheck, VariedInputsCheck

    return (CapturedLaunchCheck(), VariedInputsCheck())
