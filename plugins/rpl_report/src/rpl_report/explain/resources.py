"""Registers, LDS and occupancy of one kernel, as ``rpl explain`` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import UNKNOWN, occupancy_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.profile import OccupancyPart, ProfileDocument, ResourcesPart

__all__ = ["resource_lines"]


def resource_lines(document: ProfileDocument | None, kernel: str) -> Iterator[str]:
    """Lines about ``kernel``; nothing where the profile does not hold it."""
    profiled = None if document is None else next((k for k in document.kernels if k.name == kernel), None)
    if profiled is None:
        return
    yield f"resources   {_resources(profiled.resources)}"
    yield f"occupancy   {_occupancy(profiled.occupancy)}"
    yield ""


def _resources(resources: ResourcesPart) -> str:
    vgprs = _count(resources.vgpr_per_thread)
    if resources.accum_vgpr:
        vgprs += f" ({_count(resources.arch_vgpr)} + {resources.accum_vgpr} AGPR)"
    return (
        f"VGPR {vgprs}, SGPR {_count(resources.sgpr_per_wave)}, "
        f"LDS {_count(resources.lds_bytes)} B per workgroup, "
        f"scratch {_count(resources.scratch_bytes)} B per work-item"
    )


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _occupancy(occupancy: OccupancyPart) -> str:
    share = occupancy_share(occupancy)
    if occupancy.theoretical is None:
        return f"{share} ({occupancy.reason})"
    waves = f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} waves per SIMD"
    more = f"; one more with {occupancy.next_threshold}" if occupancy.next_threshold else ""
    return f"{share} in theory, {waves}, limited by {occupancy.limiter}{more}"
