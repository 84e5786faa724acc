"""Which kernel to work on: the one whose gain is worth most to the whole application, by what-if."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.execution_graph.results.forecasts import most_gain_ns
from rpl_codeobject.kernel_names import is_instance, source_name
from rpl_core.errors import NoVerdictError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.contracts.dag import DagDocument, ForecastPart


@frozen
class Target:
    """``recorded`` is the name in the documents, ``kernel`` the one in the source.

    ``ceiling_gain`` is the part of the application's time that would be saved if the kernel cost nothing:
    by solving the graph again, launches, host time and waits included.
    """

    recorded: str
    kernel: str
    ceiling_gain: float


def rank_targets(dag: DagDocument, wanted: str | None = None) -> tuple[Target, ...]:
    """Kernels by ceiling, highest first; ``wanted`` limits them to one source kernel.

    Raises ``NoVerdictError`` when the baseline gave no graph or does not hold the wanted kernel.
    """
    if dag.status != "available":
        raise NoVerdictError(
            f"the baseline has no critical path: {dag.reason or 'no reason given'}",
            next_step="see `rpl doctor`, and profile the program once with `rpl profile`",
        )
    kernels = [f for f in dag.forecasts if f.kind == "kernel"]
    chosen = [f for f in kernels if wanted is None or is_instance(f.name, wanted) or f.name == wanted]
    if not chosen:
        known = ", ".join(sorted({source_name(f.name) for f in kernels})) or "none"
        what = "a kernel" if wanted is None else f"the kernel {wanted!r}"
        raise NoVerdictError(f"the baseline does not launch {what}", cause=f"kernels seen: {known}")
    targets = [Target(f.name, source_name(f.name), ceiling_gain(f)) for f in chosen]
    return tuple(sorted(targets, key=lambda target: (-target.ceiling_gain, target.recorded)))


def ceiling_gain(forecast: ForecastPart) -> float:
    """Part of the application's time that the kernel can give back at most, 0 to 1."""
    for step in forecast.speedups:
        if step.speedup is None:
            whole = step.application_ns + step.application_gain_ns
            return most_gain_ns(step) / whole if whole > 0 else 0.0
    return 0.0


def worthwhile(targets: Sequence[Target], min_improvement: float) -> tuple[Target, ...]:
    """Those whose ceiling lies above what the user asks for."""
    return tuple(target for target in targets if target.ceiling_gain > min_improvement)


def ceiling_sentence(targets: Sequence[Target], min_improvement: float) -> str:
    """Why no kernel is worth it."""
    best = targets[0]
    return (
        f"even if {best.kernel} cost nothing, the application would gain {best.ceiling_gain:.1%}, "
        f"which is not above the {min_improvement:.1%} asked for"
    )
