"""Shares of ceilings as the rules test them: bandwidth beyond L2, of L2 and of LDS, arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.roofline.quotients import scaled
from rpl_core.model.metric import Exactness, Metric

if TYPE_CHECKING:
    from rpl_analysis.roofline.model import KernelRoofline

#: Begins the note of a share above one.
ABOVE_CEILING = "The figure is above its ceiling"

_SHARES = ("hbm_utilization", "l2_utilization", "lds_utilization", "compute_utilization")
_NO_LDS = Metric(0.0, "fraction", Exactness.EXACT, formula="no launch allocates LDS")
_CACHED = f"{ABOVE_CEILING}: Infinity Cache hits count as traffic beyond L2, or the runs did different work."
_WRONG = f"{ABOVE_CEILING}: counter passes and timing run did different work, or the clock is another one."


def ceiling_shares(
    roofline: KernelRoofline | None, why_none: str, *, uses_lds: bool = True
) -> Mapping[str, Metric]:
    """``hbm_utilization``, ``l2_utilization``, ``lds_utilization`` and ``compute_utilization`` of one kernel.

    ``why_none`` says why there is no roofline. A share above one is no share: it stays visible, as an
    estimate with a note. Without counters of LDS a kernel that allocates none has a share of zero there.
    """
    if roofline is None:
        unknown = Metric.unknown("fraction", why_none)
        shares = dict.fromkeys(_SHARES, unknown)
    else:
        shares = {
            "hbm_utilization": _marked(_hbm_share(roofline), _CACHED),
            "l2_utilization": _marked(_level_share(roofline, "l2", "l2_bytes"), _WRONG),
            "lds_utilization": _marked(_level_share(roofline, "lds", "lds_bytes_moved"), _WRONG),
            "compute_utilization": _marked(_compute_share(roofline), _WRONG),
        }
    if shares["lds_utilization"].value is None and not uses_lds:
        shares["lds_utilization"] = _NO_LDS
    return shares


def _hbm_share(roofline: KernelRoofline) -> Metric:
    memory, share = roofline.roof.memory, roofline.hbm_utilization
    if memory is None:
        return share
    return attrs.evolve(
        share, formula=_rate_over_ceiling(roofline.achieved_gbps, memory.peak_gbps, memory.origin.value)
    )


def _compute_share(roofline: KernelRoofline) -> Metric:
    share = roofline.compute_utilization
    return attrs.evolve(share, formula=share.formula and f"{share.formula} ({roofline.roof.origin.value})")


def _rate_over_ceiling(rate: Metric, peak_gbps: float, origin: str) -> str:
    shown = "?" if rate.value is None else f"{rate.value:.4g}"
    return f"{shown} GB/s / {peak_gbps:.6g} GB/s ({origin} ceiling)"


def _level_share(roofline: KernelRoofline, name: str, quantity: str) -> Metric:
    level = next((level for level in roofline.levels if level.level == name), None)
    if level is None:
        return Metric.unknown("fraction", f"the device's counter map has no {quantity}")
    if level.spec_gbps is None:
        return Metric.unknown("fraction", f"no data-sheet ceiling of {name.upper()} is known")
    formula = _rate_over_ceiling(level.achieved_gbps, level.spec_gbps, "spec")
    return scaled(level.achieved_gbps, 1 / level.spec_gbps, "fraction", formula)


def _marked(share: Metric, note: str) -> Metric:
    if share.value is None or share.value <= 1.0:
        return share
    return attrs.evolve(share, exactness=Exactness.ESTIMATE, upper=None, note=note)
