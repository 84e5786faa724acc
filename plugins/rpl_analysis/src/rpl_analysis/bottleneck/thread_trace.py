"""Figures that a thread trace gives where counters are absent.

It saw the waves of one compute unit per shader engine in one dispatch, so every figure is an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness, Origin

if TYPE_CHECKING:
    from rpl_att.contract import AttPart

_NOTE = "of the traced waves of one dispatch"


def thread_trace_figures(part: AttPart | None) -> Mapping[str, Metric]:
    """Figures by name; only those that the trace allows."""
    if part is None:
        return {}
    split = part.stall_split
    found = {
        "trace_headroom": _metric(
            part.headroom_fraction, "(memory wait + idle) / total", part.headroom_source
        ),
        "dependency_wait_fraction": _metric(
            split.memory_wait_fraction if split else None, "memory wait / total", "thread trace"
        ),
    }
    for name, doc in (
        ("valu_utilization", part.valu_utilization),
        ("mfma_utilization", part.mfma_utilization),
    ):
        if doc is not None and doc.origin == "measured":
            found[name] = _metric(doc.value, doc.formula, "thread trace, sampled counters")
    return {name: metric for name, metric in found.items() if metric is not None}


def _metric(value: float | None, formula: str | None, source: str | None) -> Metric | None:
    if value is None:
        return None
    return Metric(
        value=min(1.0, value),
        unit="fraction",
        exactness=Exactness.ESTIMATE,
        origin=Origin.MEASURED,
        formula=formula,
        source=source,
        note=_NOTE,
    )
