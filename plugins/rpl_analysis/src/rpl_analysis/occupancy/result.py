"""The answer: waves per SIMD with limiter, per-resource limits and next thresholds, or why there is none."""

from __future__ import annotations

from typing import Literal

from rpl_core.values import frozen

__all__ = ["Limiter", "Mode", "NoOccupancy", "Occupancy", "ResourceLimits", "Threshold"]

#: ``hardware`` rounds LDS and SGPRs to the device's allocation steps; ``llvm`` repeats the compiler.
Mode = Literal["hardware", "llvm"]
#: ``workgroup``: whole workgroups leave wave slots empty. ``wave_slots``: the architectural maximum.
Limiter = Literal["vgpr", "sgpr", "lds", "workgroup", "wave_slots"]


@frozen(kw_only=True)
class ResourceLimits:
    """Waves per SIMD that each resource alone would leave."""

    vgpr: int
    sgpr: int
    lds: int
    workgroup: int
    wave_slots: int

    def lowest(self) -> tuple[Limiter, int]:
        """The tightest resource and its waves; a tie goes to the first in field order.

        ``wave_slots`` is named only when nothing else is below the architectural maximum.
        """
        ordered: tuple[tuple[Limiter, int], ...] = (
            ("vgpr", self.vgpr),
            ("sgpr", self.sgpr),
            ("lds", self.lds),
            ("workgroup", self.workgroup),
        )
        limiter, waves = min(ordered, key=lambda entry: entry[1])
        return (limiter, waves) if waves < self.wave_slots else ("wave_slots", self.wave_slots)


@frozen(kw_only=True)
class Threshold:
    """``resource`` holds ``current`` now and must come down to ``at_most`` for one more wave per SIMD.

    Units: vector registers per wave (arch + AGPR as laid out) for ``vgpr``, SGPRs per wave for ``sgpr``,
    bytes per workgroup for ``lds``, work-items for ``workgroup`` (with the same LDS per workgroup).
    """

    resource: Limiter
    current: int
    at_most: int


@frozen(kw_only=True)
class Occupancy:
    """Occupancy of one launch; ``fraction`` is ``waves_per_simd / max_waves_per_simd``, in 0..1.

    ``next_threshold`` lists what must shrink, all of it together, for one more wave; it is empty at the
    architectural maximum. ``workgroups_per_unit`` counts the whole workgroups that registers, LDS and slots
    admit on one CU (one WGP outside CU mode): with large workgroups it can leave fewer waves than
    ``waves_per_simd``, which bounds each resource by itself as the compiler does. ``wave_size`` is ``None``
    where it is unknown and makes no difference.
    """

    waves_per_simd: int
    max_waves_per_simd: int
    fraction: float
    limiter: Limiter
    limits: ResourceLimits
    next_threshold: tuple[Threshold, ...]
    workgroups_per_unit: int
    mode: Mode
    wave_size: int | None = None


@frozen
class NoOccupancy:
    """No figure, and why: an unknown count or a request that no compute unit could hold.

    ``between``: the least and the largest fraction, where only the wave size is unknown.
    """

    reason: str
    between: tuple[float, float] | None = None
