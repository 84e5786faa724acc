"""Figures that rules test, from thread traces.

A trace saw the waves of one compute unit per shader engine in one dispatch, so every figure is an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_att.facts import DEPENDENCY_WAIT_FRACTION, MFMA_UTILIZATION, TRACE_HEADROOM, VALU_UTILIZATION
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness, Origin

if TYPE_CHECKING:
    from rpl_att.contract import AttPart
    from rpl_core.contracts.common import MetricDoc
    from rpl_core.interfaces.fact import Fact

__all__ = ["FIGURES", "kernel_figures"]

FIGURES = (TRACE_HEADROOM, DEPENDENCY_WAIT_FRACTION, VALU_UTILIZATION, MFMA_UTILIZATION)
_NOTE = "of the traced waves of one dispatch"


def kernel_figures(traces: Mapping[str, AttPart]) -> Mapping[Fact[Any], Mapping[str, Metric]]:
    """Each figure by kernel name, for the kernels whose traces allow it."""
    figures: dict[Fact[Any], dict[str, Metric]] = {figure: {} for figure in FIGURES}
    for kernel, part in traces.items():
        for figure, metric in _figures(part).items():
            if metric is not None:
                figures[figure][kernel] = metric
    return figures


def _figures(part: AttPart) -> Mapping[Fact[Any], Metric | None]:
    waiting = part.stall_split.memory_wait_fraction if part.stall_split else None
    return {
        TRACE_HEADROOM: _metric(part.headroom_fraction, "(memory wait + idle) / total", part.headroom_source),
        DEPENDENCY_WAIT_FRACTION: _metric(waiting, "memory wait / total", "thread trace"),
        VALU_UTILIZATION: _sampled(part.valu_utilization),
        MFMA_UTILIZATION: _sampled(part.mfma_utilization),
    }


def _sampled(doc: MetricDoc | None) -> Metric | None:
    """Only what counters beside the trace measured: a modelled utilisation is no evidence for a label."""
    if doc is None or doc.origin != "measured":
        return None
    return _metric(doc.value, doc.formula, "thread trace, sampled counters")


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
