"""Section on what the kernel costs the application, and what making it faster would bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import duration_ns, milliseconds, number, percent
from rpl_llm_unroll.prompt.figures import NOT_COLLECTED, bullets, missing
from rpl_llm_unroll.prompt.model import Section

if TYPE_CHECKING:
    from rpl_analysis.contracts.dag import SpeedupForecastPart
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
    from rpl_llm_unroll.prompt.facts import RunFacts

_TITLE = "What the kernel costs"


def weight_section(facts: RunFacts) -> Section:
    if facts.profile is None:
        return Section(_TITLE, missing("no run was given"))
    origin = facts.origin or "of unknown origin"
    rows = [("GPU time of the application per run", _runtime(facts.profile, origin))]
    timing = facts.timing
    if timing is None:
        rows.append(("this kernel", missing("the run does not launch it")))
    else:
        rows += _own_time(timing, origin)
    return Section(_TITLE, bullets([*rows, *_path(facts)]))


def _runtime(profile: ProfileDocument, origin: str) -> str:
    if profile.runtime_ms is None:
        return missing(profile.runtime_reason)
    stability = profile.stability
    spread = f", CV {percent(stability.cv, 2)}" if stability.cv is not None else ""
    runs = f", {stability.runs} runs" if stability.runs else ""
    exact = ", an estimate" if profile.runtime_exactness == "estimate" else ""
    return f"{milliseconds(profile.runtime_ms)} ({origin}{exact}{runs}{spread})"


def _own_time(timing: KernelProfile, origin: str) -> list[tuple[str, str]]:
    if timing.runtime_ms is None:
        return [("this kernel per run", missing(timing.runtime_reason))]
    share = (
        f"{percent(timing.time_share)} of the GPU time" if timing.time_share is not None else NOT_COLLECTED
    )
    per_launch = duration_ns(timing.median_ns)
    return [
        ("this kernel per run", f"{milliseconds(timing.runtime_ms)} ({origin}), {share}"),
        ("launches per run", number(timing.launches)),
        ("median of one launch", per_launch if timing.median_ns is not None else NOT_COLLECTED),
    ]


def _path(facts: RunFacts) -> list[tuple[str, str]]:
    if facts.dag is None or facts.dag.status != "available":
        return [("critical path", missing(facts.dag.reason if facts.dag else "no run was given"))]
    own = facts.criticality
    if own is None:
        return [("critical path", missing("this kernel has no entry in the execution graph"))]
    ceiling = "unbounded" if own.speedup_ceiling is None else f"{own.speedup_ceiling:.3g}x"
    share = (
        f"f = {percent(own.criticality_weight)}; ceiling of the path's speed-up by this kernel alone: "
        f"1/(1-f) = {ceiling}"
    )
    rows = [("share of the critical path", share)]
    if own.path_ceiling is not None:
        rows.append(("the same with other paths taking over", f"{own.path_ceiling:.3g}x (modelled)"))
    return rows + [_gain(step) for step in (facts.forecast.speedups if facts.forecast else ())]


def _gain(step: SpeedupForecastPart) -> tuple[str, str]:
    what = "it cost nothing" if step.speedup is None else f"it ran {step.speedup:g} times as fast"
    gain = duration_ns(step.application_gain_ns)
    speedup = "" if step.application_speedup is None else f", {step.application_speedup:.4g}x"
    return (f"gain of the application if {what} (modelled)", f"{gain}{speedup}")
