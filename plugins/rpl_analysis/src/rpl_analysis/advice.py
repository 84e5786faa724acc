"""The analyzer that says what to do next: which advice of plugins holds, in order of expected gain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from rpl_analysis.contracts.analysis import ConfirmationPart, NextStepPart, PriorityPart
from rpl_analysis.counters.formulas import counters_of
from rpl_analysis.execution_graph.results.forecasts import most_gain_ns
from rpl_analysis.facts import BOTTLENECKS, EXECUTION_GRAPH, KERNEL_QUANTITIES, NEXT_STEPS, RANKS
from rpl_analysis.hookspecs import ADVICE
from rpl_analysis.interfaces import (
    Advice,
    AdviceState,
    BottleneckLabel,
    Comparison,
    Condition,
    label_name,
    packaged_rules,
)
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.bottleneck import Classification
    from rpl_analysis.contracts.dag import ClockDomainPart
    from rpl_analysis.contracts.profile import RanksPart
    from rpl_analysis.counters.quantities import KernelQuantities
    from rpl_analysis.execution_graph.results.model import ExecutionGraph
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.recording import Recording


@frozen
class NextSteps:
    """``remedies`` are the commands that record what rules could not be tested without, by kernel."""

    priorities: tuple[PriorityPart, ...]
    kernels: Mapping[str, tuple[NextStepPart, ...]]
    remedies: Mapping[str, str]


class AdviceAnalyzer(Analyzer):
    """Fact ``NEXT_STEPS``, from the advice that plugins offer."""

    name = "advice"
    summary = "what to do next, in order of expected gain, and what would confirm it"
    requires = frozenset({BOTTLENECKS})
    wants = frozenset({EXECUTION_GRAPH, KERNEL_QUANTITIES, RANKS})
    provides = frozenset({NEXT_STEPS})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        facts = context.facts
        known = Known(
            classifications=facts[BOTTLENECKS],
            quantities=facts.get(KERNEL_QUANTITIES) or {},
            graph=facts.get(EXECUTION_GRAPH),
            ranks=facts.get(RANKS),
            device=context.device,
            has_counters=bool(context.recording.counter_passes),
            architectures=_architectures(context.recording),
            modelled=any(trace.origin is Origin.MODELLED for trace in context.recording.timing_runs),
        )
        return AnalysisOutcome({NEXT_STEPS: next_steps(known, tuple(context.offered(ADVICE)))})


def _architectures(recording: Recording) -> tuple[str, ...]:
    """Those that the recording names, sorted."""
    agents = (agent for trace in recording.traces for agent in trace.agents)
    return tuple(sorted({agent.architecture for agent in agents if agent.architecture}))


# Which advice holds for a kernel or for the application, with what would confirm it.

#: Steps per label or finding, and subjects in the ranking (chosen).
MOST_STEPS, MOST_PRIORITIES = 3, 10
#: Advice on the application begins at this share of the makespan (chosen).
WORTH_A_STEP = 0.05
_APPLICATION: Final = "application"
_BEHIND_SHARES = {
    "hbm_utilization": "hbm_bytes",
    "l2_utilization": "l2_bytes",
    "lds_utilization": "lds_bytes_moved",
}
_UNKNOWN_ORDER: Final = "unknown_order"
_PLUGIN_LABEL: Final = "plugin_label"
_SUBJECTS = {
    "host_idle": "GPU idle, nothing submitted by the host",
    "sync_idle": "GPU idle, held back by a synchronisation",
    "launch_idle": "GPU idle, between submission and start",
    "unattributed_idle": "GPU idle, cause not recorded",
    "unexplained_idle": "GPU idle, cause not recorded",
    "copying_idle": "GPU idle, probably copying: copies were not recorded",
    "copies": "copies",
    "collective_wait": "ranks waiting in collectives",
}


@frozen(eq=False)
class Known:
    """What the analyses found."""

    classifications: Mapping[str, Classification]
    quantities: Mapping[str, KernelQuantities]
    graph: ExecutionGraph | None
    ranks: RanksPart | None
    device: DeviceModel | None
    has_counters: bool
    architectures: tuple[str, ...] = ()  # as recorded
    modelled: bool = False


def next_steps(known: Known, advice: Sequence[Advice]) -> NextSteps:
    """Steps of every kernel, and what to look at first."""
    kernels = {
        name: tuple(_steps_of_kernel(classification, known, advice))[:MOST_STEPS]
        for name, classification in known.classifications.items()
    }
    ranked = _ranked(known, _priorities(known, advice, kernels))
    ranked = [*_closing_ranges(known, advice, ranked), *ranked]
    remedies = {
        name: _remedy(classification, known) for name, classification in known.classifications.items()
    }
    given = {name: remedy for name, remedy in remedies.items() if remedy is not None}
    return NextSteps(tuple(ranked[:MOST_PRIORITIES]), kernels, given)


def _ranked(known: Known, priorities: Iterable[PriorityPart]) -> list[PriorityPart]:
    """By the most that the run can save, then by time, then by name."""
    symbols = known.graph.symbols if known.graph else ()
    time_ns = {symbol.name: symbol.total_ns for symbol in symbols}
    return sorted(priorities, key=lambda p: (-_most(p), -time_ns.get(p.subject, 0), p.subject))


def _most(priority: PriorityPart) -> int:
    return priority.gain_ns if priority.gain_at_most_ns is None else priority.gain_at_most_ns


def _closing_ranges(
    known: Known, advice: Sequence[Advice], ranked: Iterable[PriorityPart]
) -> Iterator[PriorityPart]:
    """The recording that closes the ranges, where one is wide and calls are not recorded."""
    graph = known.graph
    if graph is None or not graph.makespan_ns or graph.sync_info not in ("none", "api_names"):
        return
    widest = max((_most(priority) - priority.gain_ns for priority in ranked), default=0)
    steps = _steps_about(_UNKNOWN_ORDER, advice)
    if widest / graph.makespan_ns >= WORTH_A_STEP and steps:
        subject = f"order of {graph.lanes} streams, not recorded"
        yield PriorityPart(subject, _APPLICATION, None, 0, None, steps[:MOST_STEPS], widest, None)


def _remedy(classification: Classification, known: Known) -> str | None:
    """What records the counters that were missing; ``None`` where none is, or no command helps."""
    if known.device is None or known.modelled:
        return None
    unknown = [entry.partition(":")[0] for entry in classification.unknown]
    if not known.has_counters:
        counted = {quantity.name for quantity in known.device.counter_map.quantities}
        return "rpl profile --roofline -- {command}" if counted.intersection(map(_counted, unknown)) else None
    quantities = known.quantities.get(classification.kernel)
    metrics = [quantities.per_launch(_counted(name)) for name in unknown] if quantities else []
    missing = [name for metric in metrics if metric is not None for name in metric.missing]
    return _asking_for(missing, known.device)


def _counted(figure: str) -> str:
    """The quantity of counters behind a share of a ceiling."""
    return _BEHIND_SHARES.get(figure, figure)


def _steps_of_kernel(
    classification: Classification, known: Known, advice: Iterable[Advice]
) -> Iterator[NextStepPart]:
    label = label_name(classification.label)
    holding = {
        tested.rule.id for tested in classification.evidence if tested.rule.label == classification.label
    }
    quantities = known.quantities.get(classification.kernel)
    state = _state(known) if classification.label is BottleneckLabel.UNCLASSIFIED else None
    figures = _figures(classification, quantities)
    if not any(label in each.labels for each in advice):
        # A label of a plugin that brings no advice of its own.
        yield from _steps_about(_PLUGIN_LABEL, advice)
    for each in advice:
        if label not in each.labels or each.state is not state:
            continue
        if each.rules and not holding.intersection(each.rules):
            continue
        if all(_holds(condition, figures) for condition in each.conditions):
            names = each.confirm
            if each.confirm_unknown:
                names = (*names, *(entry.partition(":")[0] for entry in classification.unknown))
            yield _step(each, names, figures, known.device)


def _state(known: Known) -> AdviceState:
    if known.device is None:
        return AdviceState.UNKNOWN_DEVICE if known.architectures else AdviceState.NO_DEVICE
    if known.has_counters:
        return AdviceState.COUNTERS
    return AdviceState.MODELLED if known.modelled else AdviceState.NO_COUNTERS


def _figures(classification: Classification, quantities: KernelQuantities | None) -> Mapping[str, Metric]:
    """What counters gave, and what the rules were tested with."""
    figures = {} if quantities is None else {n: value.per_launch for n, value in quantities.values.items()}
    tested = (
        part for rule in (*classification.evidence, *classification.near_misses) for part in rule.conditions
    )
    return {**figures, **{part.condition.quantity: part.metric for part in tested}}


def _holds(condition: Condition, figures: Mapping[str, Metric]) -> bool:
    """Whether it surely holds."""
    metric = figures.get(condition.quantity)
    if metric is None or metric.value is None:
        return False
    ends = (metric.value,) if metric.upper is None else (metric.value, metric.upper)
    if metric.exactness is Exactness.LOWER_BOUND and not condition.holds(float("inf")):
        return False
    return all(condition.holds(end) for end in ends)


def _step(
    each: Advice, names: Iterable[str], figures: Mapping[str, Metric], device: DeviceModel | None
) -> NextStepPart:
    confirm = tuple(_confirmation(name, figures.get(name), device) for name in dict.fromkeys(names))
    command = each.command or _collecting(confirm, device)
    return NextStepPart(each.id, each.text, confirm, command, each.source)


def _confirmation(name: str, metric: Metric | None, device: DeviceModel | None) -> ConfirmationPart:
    defined = device.counter_map.quantities if device else ()
    formulas = next((quantity.formulas for quantity in defined if quantity.name == name), ())
    return ConfirmationPart(
        quantity=name,
        value=metric.value if metric else None,
        unit=metric.unit if metric else None,
        exactness=metric.exactness if metric else None,
        counters=counters_of(formulas[0]) if formulas else (),
        upper=metric.upper if metric else None,
    )


def _collecting(confirm: Sequence[ConfirmationPart], device: DeviceModel | None) -> str | None:
    """The command that records the counters of what is still unknown; ``None`` if nothing is."""
    lacking = [name for each in confirm if each.value is None for name in each.counters]
    return _asking_for(lacking, device) if device is not None else None


def _asking_for(lacking: Sequence[str], device: DeviceModel) -> str | None:
    if not lacking:
        return None
    usual = {name.removesuffix("_sum") for name in device.counter_map.recommended}
    extra = [name for name in dict.fromkeys(lacking) if name not in usual]
    words = f" --counters {','.join(extra)}" if extra else ""
    return f"rpl profile --roofline{words} -- {{command}}"


def _priorities(
    known: Known, advice: Sequence[Advice], kernels: Mapping[str, tuple[NextStepPart, ...]]
) -> Iterator[PriorityPart]:
    graph = known.graph
    makespan = graph.makespan_ns if graph else None
    if graph is None or not makespan:
        return
    figures = _application_figures(graph, known.ranks, makespan)
    for forecast in graph.forecasts:
        twice = next((answer for answer in forecast.speedups if answer.speedup == 2.0), None)
        classification = known.classifications.get(forecast.name)
        if forecast.kind == "kernel" and classification is not None and twice and most_gain_ns(twice) > 0:
            gain, most = twice.application_gain_ns, twice.application_gain_at_most_ns
            label = label_name(classification.label)
            steps = kernels.get(forecast.name, ())
            yield PriorityPart(
                forecast.name, "kernel", label, gain, gain / makespan, steps, *_upper(most, makespan)
            )
    for name, (least, most) in figures.items():
        steps = _steps_about(name, advice)
        if most / makespan >= WORTH_A_STEP and steps:
            gain, steps = least // 2, steps[:MOST_STEPS]
            at_most = None if most == least else most // 2
            subject = _SUBJECTS[name]
            upper = _upper(at_most, makespan)
            yield PriorityPart(subject, _APPLICATION, None, gain, gain / makespan, steps, *upper)


def _upper(gain_ns: int | None, makespan: int) -> tuple[int | None, float | None]:
    return gain_ns, None if gain_ns is None else gain_ns / makespan


def _steps_about(figure: str, advice: Iterable[Advice]) -> tuple[NextStepPart, ...]:
    """What the advice on a figure of the whole application says to do."""
    return tuple(
        _step(each, (), {}, None) for each in advice if each.figure == figure and _APPLICATION in each.labels
    )


def _application_figures(
    graph: ExecutionGraph, ranks: RanksPart | None, makespan: int
) -> Mapping[str, tuple[int, int]]:
    """Times of the application that no kernel takes, in ns of the makespan: at least and at most."""
    domain: ClockDomainPart | None = max(graph.clock_domains, key=lambda d: d.critical_path_ns, default=None)
    idle = attrs.asdict(domain.idle) if domain and domain.idle else {}
    figures = {f"{name.removesuffix('_ns')}_idle": int(ns) for name, ns in idle.items()}
    if graph.sync_info != "none":  # calls are recorded, those of this time are not
        figures["unexplained_idle"] = figures.pop("unattributed_idle", 0)
    copies = [f for f in graph.forecasts if f.kind == "copy"]
    gains = (s.application_gain_ns for f in copies for s in f.speedups if s.speedup == 2.0)
    most = (most_gain_ns(s) for f in copies for s in f.speedups if s.speedup == 2.0)
    ends = min(2 * sum(gains), makespan), min(2 * sum(most), makespan)
    waits = [rank.wait_ns for rank in ranks.ranks if rank.wait_ns is not None] if ranks else []
    figures["collective_wait"] = max(waits, default=0)
    return {**{name: (ns, ns) for name, ns in figures.items()}, "copies": ends}


# The advice that rpl-analysis gives, from ``advice.toml`` beside this module.


@cache
def builtin_advice() -> tuple[Advice, ...]:
    """In the order of the file."""
    return tuple(_advice(entry) for entry in packaged_rules(__package__, "advice.toml"))


def _advice(entry: dict[str, Any]) -> Advice:
    tested = (
        Condition(
            condition["quantity"],
            Comparison(condition["comparison"]),
            condition["threshold"],
            condition["source"],
        )
        for condition in entry.get("conditions", ())
    )
    lists = {name: tuple(entry.get(name, ())) for name in ("labels", "rules", "confirm")}
    state = AdviceState(entry["state"]) if "state" in entry else None
    return Advice(**{**entry, **lists, "conditions": tuple(tested), "state": state})
