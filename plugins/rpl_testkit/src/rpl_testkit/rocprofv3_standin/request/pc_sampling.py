"""PC sampling on the command line: the options together, and what the GPU of the stand-in offers.

Words of refusals are those of rocprofv3.py and of its tool library (rocprofiler-sdk 1.0 to 1.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rpl_core.values import frozen

__all__ = ["BETA_VARIABLE", "PcSampling", "PcSamplingError", "pc_sampling_of"]

BETA_VARIABLE: Final = "ROCPROFILER_PC_SAMPLING_BETA_ENABLED"
#: As ``rocprofv3 -L`` lists them for gfx942: unit, smallest and largest interval.
_OFFERED: Final = {
    "stochastic": ("cycles", 256, 1 << 31),
    "host_trap": ("time", 1, (1 << 64) - 1),
}


class PcSamplingError(Exception):
    """The options don't go together; the text is what the profiler prints after `Fatal error:`."""


@frozen
class PcSampling:
    """A request whose options go together."""

    method: str
    unit: str
    interval: int

    @property
    def is_offered(self) -> bool:
        unit, smallest, largest = _OFFERED[self.method]
        return self.unit == unit and smallest <= self.interval <= largest

    @property
    def is_configurable(self) -> bool:
        """The hardware counts cycles by a power of two."""
        return self.method != "stochastic" or not self.interval & (self.interval - 1)


def pc_sampling_of(options: Mapping[str, Any], environment: Mapping[str, str]) -> PcSampling | None:
    """The request, or None. PcSamplingError as the driver script refuses it."""
    method, unit, interval = (options.get(f"pc_sampling_{key}") for key in ("method", "unit", "interval"))
    if not (method or unit or interval):
        return None
    if not options.get("pc_sampling_beta_enabled") and BETA_VARIABLE not in environment:
        raise PcSamplingError(
            "PC sampling unavailable. The feature is implicitly disabled. To enable it, use "
            f"--pc-sampling-beta-enable option or set {BETA_VARIABLE}=ON in the environment"
        )
    if not (method and unit and interval):
        raise PcSamplingError("All three PC sampling configurations need to be set")
    if interval <= 0:
        raise PcSamplingError("PC sampling interval must be a positive number.")
    return PcSampling(method, unit, interval)
