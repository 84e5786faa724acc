"""What may be asked of rocprofv3's PC sampling, on which GPUs, and what AMD says about the risk.

Sources: rocprofiler-sdk, how-to ``using-pc-sampling.rst`` (supported GPUs, units, intervals) and API
reference ``pc_sampling.rst`` (risk acknowledgement), both of 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError, UsageError
from rpl_core.values import frozen
from rpl_pcsampling.options import PC_INTERVAL, PC_SAMPLING
from rpl_pcsampling.samples import Method

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.interfaces.options import Options

__all__ = ["RISK", "SamplingRequest", "asked_for", "require_support", "sampling_command"]

#: The instruction sets of AMD's table, and what they can do; later ones of the family are taken for able.
_HOST_TRAP_ONLY = ("gfx90a",)
_BOTH = ("gfx942", "gfx950")
_ABLE_FAMILY = re.compile(r"gfx9[0-9a-f]{2,3}")
_SMALLEST_CYCLES, _LARGEST_CYCLES = 256, 1 << 31
#: Of AMD's example; and chosen: AMD's example of 1 us interrupts every wave a million times a second.
_DEFAULT_CYCLES, _DEFAULT_US = 1 << 20, 100

RISK = (
    "PC sampling is a beta of AMD, which warns that it may freeze the hardware, so that only a cold restart "
    "(power off and on) helps"
)


@frozen
class SamplingRequest:
    """``interval`` is in cycles for stochastic sampling and in microseconds for host-trap."""

    method: Method
    interval: int

    @property
    def unit(self) -> str:
        """As rocprofv3 calls it."""
        return "cycles" if self.method is Method.STOCHASTIC else "time"

    def __str__(self) -> str:
        if self.method is Method.STOCHASTIC:
            return f"stochastic, every {self.interval} cycles"
        return f"host-trap, every {self.interval} us"


def asked_for(options: Options) -> SamplingRequest | None:
    """The request in ``options``, or ``None``. Raises ``UsageError`` for an interval that can't be."""
    name, interval = options[PC_SAMPLING], options[PC_INTERVAL]
    if name is None:
        return None
    if name == "host-trap":
        return SamplingRequest(Method.HOST_TRAP, interval or _DEFAULT_US)
    cycles = interval or _DEFAULT_CYCLES
    if cycles & (cycles - 1) or not _SMALLEST_CYCLES <= cycles <= _LARGEST_CYCLES:
        below = max(_SMALLEST_CYCLES, min(_LARGEST_CYCLES, 1 << (cycles.bit_length() - 1)))
        raise UsageError(
            f"--pc-interval {cycles} can't be: stochastic sampling takes a power of two from "
            f"{_SMALLEST_CYCLES} to {_LARGEST_CYCLES} cycles",
            next_step=f"for example --pc-interval {below}",
        )
    return SamplingRequest(Method.STOCHASTIC, cycles)


def require_support(request: SamplingRequest, architecture: str | None) -> None:
    """Raise ``MissingError`` for a GPU that can't be sampled so; an unknown one is left to rocprofv3."""
    if architecture is None or architecture in _BOTH:
        return
    if architecture in _HOST_TRAP_ONLY:
        if request.method is Method.HOST_TRAP:
            return
        raise MissingError(
            f"{architecture} has no stochastic PC sampling, which came with {_BOTH[0]}",
            next_step="use --pc-sampling host-trap",
        )
    if architecture < _BOTH[0] or not _ABLE_FAMILY.fullmatch(architecture):
        raise MissingError(
            f"AMD lists no PC sampling for {architecture}",
            cause=f"it is for {', '.join((*_HOST_TRAP_ONLY, *_BOTH))}",
            next_step="`rocprofv3 -L` shows what this machine can do",
        )


def sampling_command(
    executable: Path, request: SamplingRequest, application: Sequence[str], directory: str
) -> tuple[str, ...]:
    """The whole command. JSON, because it alone says where in the code a sample is.

    The kernel trace beside it names dispatches; its times are not used.
    """
    return (
        str(executable),
        "--pc-sampling-beta-enabled",
        "--pc-sampling-method",
        request.method.value,
        "--pc-sampling-unit",
        request.unit,
        "--pc-sampling-interval",
        str(request.interval),
        "--kernel-trace",
        "--output-format",
        "json",
        "-d",
        directory,
        "-o",
        "pcs_%pid%",
        "--",
        *application,
    )
