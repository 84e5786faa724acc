"""Kernels in the order of the page: most time first, those of unknown time last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument

__all__ = ["by_time", "time_ns", "time_shares"]


def by_time(profile: ProfileDocument) -> list[KernelProfile]:
    """Ties keep the document's order."""
    return sorted(profile.kernels, key=lambda kernel: -(kernel.runtime_ms or 0.0))


def time_ns(kernel: KernelProfile) -> float | None:
    return None if kernel.runtime_ms is None else kernel.runtime_ms * 1e6


def time_shares(profile: ProfileDocument) -> dict[str, float]:
    """Share of kernel time by name, 0 where it is unknown."""
    return {kernel.name: kernel.time_share or 0.0 for kernel in profile.kernels}
