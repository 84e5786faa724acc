"""The four documents: their contracts as the core knows them, and what they say, translated from facts.

Pure translation, nothing is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.contracts import plain_values
from rpl_analysis.contracts.analysis import (
    ConditionEvidence,
    KernelAnalysis,
    KernelLabels,
    RuleEvidence,
)
from rpl_analysis.contracts.dag import GraphResult, SymbolCriticality
from rpl_analysis.contracts.profile import (
    CriticalPathPart,
    GpuPart,
    KernelPart,
    KernelProfile,
    OccupancyPart,
    PhasesPart,
    Profile,
    RanksPart,
    ResourcesPart,
    StabilityPart,
)
from rpl_analysis.contracts.roofline import FlopModelsPart, KernelRooflineDoc, RooflinePart
from rpl_analysis.facts import (
    APPLICATION_TIME,
    BOTTLENECKS,
    EXECUTION_GRAPH,
    KERNEL_TIMES,
    NEXT_STEPS,
    OCCUPANCY,
    PHASES,
    RANKS,
    ROOFLINE,
)
from rpl_analysis.interfaces import label_name
from rpl_analysis.range_option import RANGE
from rpl_analysis.text import linker_names
from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.errors import BadDataError
from rpl_core.interfaces.document import DocumentContext, DocumentContract, DocumentKind
from rpl_core.model.device import CeilingOrigin, DeviceModel, Pipe
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.advice import NextSteps
    from rpl_analysis.bottleneck import Classification, TestedCondition, TestedRule
    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument, WhatIfDocument
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_analysis.contracts.rank_job import RanksDocument
    from rpl_analysis.contracts.roofline import RooflineDocument
    from rpl_analysis.runtime.timing import ApplicationTime, KernelResources, KernelTime
    from rpl_codeobject.occupancy import NoOccupancy, Occupancy

#: The contracts as data, one file per document, written by ``make schemas``: reading one makes no model.
_SHAPES = Path(__file__).parent.with_name("contracts") / "shapes"

#: Every node and edge of the graph that dag.json sums up.
FULL_GRAPH_FILE = "dag_full.npz"


#: What is said where the execution-graph analyzer did not run.
NO_GRAPH = GraphResult(status="unavailable", reason="the execution-graph analyzer did not run")


def document_fields(record: object) -> Mapping[str, Any]:
    """What a record says as the fields of a document, to be checked against its shape."""
    # An empty list is the default, and left out: a section of another plugin may fill it.
    said = {name: value for name, value in plain_values(record).items() if value != ()}
    return {"schema_version": SCHEMA_VERSION, **said}


def dag_document(graph: GraphResult | None, name: str | None = None) -> Mapping[str, Any]:
    """The document of the work of the range ``name``, or of all."""
    return {**document_fields(graph or NO_GRAPH), "range": name}


class _Kind(DocumentKind):
    def shape(self) -> Mapping[str, Any]:
        shape: Mapping[str, Any] = json.loads((_SHAPES / f"{self.name}.json").read_bytes())
        return shape


class ProfileKind(_Kind):
    name = "profile"
    summary = "times, stability, resources, occupancy and verdicts, per kernel and overall"
    leading = True

    def model(self) -> type[ProfileDocument]:
        from rpl_analysis.contracts.profile import ProfileDocument

        return ProfileDocument

    def draft(self, context: DocumentContext) -> Mapping[str, Any]:
        facts = context.facts
        profile = profile_of(
            ProfileFacts(
                times=facts.get(KERNEL_TIMES) or {},
                application=facts.get(APPLICATION_TIME),
                occupancy=facts.get(OCCUPANCY) or {},
                rooflines=_rooflines(context),
                dag=_graph(context),
                classifications=facts.get(BOTTLENECKS) or {},
                ranks=facts.get(RANKS),
                phases=facts.get(PHASES),
                range=_range(context),
                device=context.device,
                device_reason=context.device_reason,
                wave_size=_wave_size(context),
                incomplete=context.recording.incomplete,
                symbols=linker_names(context.recording.traces),
            )
        )
        return document_fields(profile)

    def with_section(
        self, draft: Mapping[str, Any], field: str, block: Any, kernels: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if kernels:
            filled = [
                {**k, field: kernels[k["name"]]} if k["name"] in kernels else k for k in draft["kernels"]
            ]
            draft = {**draft, "kernels": tuple(filled)}
        return draft if block is None else super().with_section(draft, field, block, {})

    def places_of(self, schema: dict[str, Any], field: str) -> Sequence[dict[str, Any]]:
        per_kernel = schema["$defs"]["KernelProfile"]["properties"].get(field)
        return (*super().places_of(schema, field), *([per_kernel] if per_kernel else ()))

    def brief(self, content: Mapping[str, Any]) -> str:
        if content["runtime_ms"] is None:
            raise BadDataError(f"the runtime is unknown: {content['runtime_reason']}")
        return f"{content['runtime_ms']:.6f}"


def _graph(context: DocumentContext) -> GraphResult:
    graph = context.facts.get(EXECUTION_GRAPH)
    return graph if graph is not None else NO_GRAPH


def _rooflines(context: DocumentContext) -> Mapping[str, KernelRooflineDoc]:
    result = context.facts.get(ROOFLINE)
    return {kernel.name: kernel for kernel in result.kernels} if result is not None else {}


def _range(context: DocumentContext) -> str | None:
    return context.options[RANGE] or None


def _wave_size(context: DocumentContext) -> int | None:
    if context.device is not None:
        return context.device.wave_size
    sizes = {agent.wave_size for agent in context.recording.gpu_agents}
    return sizes.pop() if len(sizes) == 1 else None


class RooflineKind(_Kind):
    name = "roofline"
    summary = "work and traffic of every kernel under the ceilings of the device"

    def model(self) -> type[RooflineDocument]:
        from rpl_analysis.contracts.roofline import RooflineDocument

        return RooflineDocument

    def draft(self, context: DocumentContext) -> Mapping[str, Any]:
        from rpl_analysis.contracts.roofline import RooflineResult, RooflineStatus

        result = context.facts.get(ROOFLINE)
        if result is None:
            reason = "the roofline analyzer did not run"
            result = RooflineResult(status=RooflineStatus.UNAVAILABLE, reason=reason)
        return document_fields(result)


class DagKind(_Kind):
    name = "dag"
    summary = "critical path, slack, dominance and what-if of the execution graph"

    def model(self) -> type[DagDocument]:
        from rpl_analysis.contracts.dag import DagDocument

        return DagDocument

    def draft(self, context: DocumentContext) -> Mapping[str, Any]:
        return dag_document(context.facts.get(EXECUTION_GRAPH), _range(context))

    def attachments(self, context: DocumentContext) -> Mapping[str, bytes | None]:
        graph = context.facts.get(EXECUTION_GRAPH)
        columns = graph.columns if graph is not None else None
        return {FULL_GRAPH_FILE: columns.to_npz() if columns is not None else None}


class AnalysisKind(_Kind):
    name = "analysis"
    summary = "one bottleneck label per kernel with the evidence for it"

    def model(self) -> type[AnalysisDocument]:
        from rpl_analysis.contracts.analysis import AnalysisDocument

        return AnalysisDocument

    def draft(self, context: DocumentContext) -> Mapping[str, Any]:
        facts = context.facts
        published = {
            key.name: _as_json(facts[key]) for key in facts if key.published and key in context.providers
        }
        labels = kernel_labels(
            facts.get(KERNEL_TIMES) or {},
            facts.get(BOTTLENECKS) or {},
            _rooflines(context),
            {symbol.name: symbol.criticality_weight for symbol in _graph(context).symbols},
            facts.get(NEXT_STEPS),
            extensions=dict(sorted(published.items())),
        )
        return document_fields(labels)


def _as_json(fact: object) -> object:
    """A copy as plain values; that it can be one was checked where the fact was given."""
    return json.loads(json.dumps(fact, default=dict))


class RanksContract(DocumentContract):
    name = "ranks"
    summary = "what `rpl ranks` says of a job of many ranks"

    def model(self) -> type[RanksDocument]:
        from rpl_analysis.contracts.rank_job import RanksDocument

        return RanksDocument


class WhatIfContract(DocumentContract):
    name = "what-if"
    summary = "what `rpl what-if --json` prints"

    def model(self) -> type[WhatIfDocument]:
        from rpl_analysis.contracts.dag import WhatIfDocument

        return WhatIfDocument


# What ``profile.json`` and ``analysis.json`` say, from the facts of all analyzers.


@frozen(eq=False)
class ProfileFacts:
    """What the profile document is made of. Mappings are by kernel name."""

    times: Mapping[str, KernelTime]
    application: ApplicationTime | None
    occupancy: Mapping[str, Occupancy | NoOccupancy]
    rooflines: Mapping[str, KernelRooflineDoc]
    dag: GraphResult
    classifications: Mapping[str, Classification]
    ranks: RanksPart | None
    phases: PhasesPart | None
    range: str | None
    device: DeviceModel | None
    device_reason: str | None
    wave_size: int | None
    incomplete: str | None
    symbols: Mapping[str, str] = attrs.field(factory=dict)


def profile_of(facts: ProfileFacts) -> Profile:
    """What the document says; the dominant kernel is the one with the largest time."""
    symbols = {symbol.name: symbol for symbol in facts.dag.symbols}
    kernels = tuple(_kernel_profile(time, facts, symbols.get(time.name)) for time in facts.times.values())
    dominant = kernels[0] if kernels else None
    application = facts.application
    runtime = application.runtime if application else None
    return Profile(
        kernel=dominant.kernel if dominant else KernelPart(reason="no kernel dispatch was recorded"),
        gpu=_gpu(facts),
        runtime_ms=runtime.value if runtime else None,
        runtime_source=application.runtime_source if application else None,
        runtime_exactness=runtime.exactness if runtime else None,
        runtime_range_ms=application.range_ms if application else None,
        runtime_reason=runtime.reason if runtime else "the runtime analyzer did not run",
        stability=(application and application.stability) or StabilityPart(),
        call_overhead=application.call_overhead if application else None,
        resources=dominant.resources if dominant else ResourcesPart(),
        occupancy=dominant.occupancy if dominant else OccupancyPart(reason="no kernel"),
        roofline=dominant.roofline if dominant else None,
        critical_path=_critical_path(facts.dag),
        bottleneck=dominant.bottleneck if dominant else None,
        headroom_fraction=dominant.headroom_fraction if dominant else None,
        launches=application.launches if application else None,
        kernels=kernels,
        ranks=facts.ranks,
        phases=facts.phases,
        range=facts.range,
        incomplete=facts.incomplete,
    )


def _kernel_profile(time: KernelTime, facts: ProfileFacts, symbol: SymbolCriticality | None) -> KernelProfile:
    classification = facts.classifications.get(time.name)
    roofline = facts.rooflines.get(time.name)
    timed, between = time.max_ns > 0, time.range_total_ns
    damaged = "every dispatch has a duration of zero: the timestamps are damaged or too coarse"
    return KernelProfile(
        name=time.name,
        symbol=facts.symbols.get(time.name),
        launches=time.launches,
        time_share=min(1.0, time.share) if timed else None,
        runtime_ms=time.total_ns / 1e6 if timed else None,
        runtime_exactness=time.exactness if timed else None,
        runtime_range_ms=(between[0] / 1e6, between[1] / 1e6) if timed and between else None,
        runtime_reason=None if timed else damaged,
        mean_ns=time.mean_ns if timed else None,
        median_ns=time.median_ns if timed else None,
        min_ns=time.min_ns if timed else None,
        max_ns=time.max_ns if timed else None,
        kernel=_kernel(time),
        stability=time.stability if timed else StabilityPart(),
        resources=_resources(time.resources),
        occupancy=_occupancy(time, facts.occupancy.get(time.name), facts.wave_size),
        roofline=roofline_in_short(roofline) if roofline else None,
        criticality_weight=symbol.criticality_weight if symbol else None,
        slack_ns=symbol.min_slack_ns if symbol else None,
        bottleneck=label_name(classification.label) if classification else None,
        headroom_fraction=classification.headroom_fraction if classification else None,
    )


def roofline_in_short(kernel: KernelRooflineDoc) -> RooflinePart | None:
    """The block of ``profile.json``; ``None`` where neither FLOPs nor bytes are known."""
    if kernel.flops.value is None and kernel.bytes.value is None:
        return None
    figures = {
        "flops": kernel.flops,
        "bytes": kernel.bytes,
        "operational_intensity": kernel.operational_intensity,
        "achieved_gflops": kernel.achieved_gflops,
        "achieved_gbps": kernel.achieved_gbps,
        "position": kernel.position,
    }
    reasons = {name: metric.reason or "unknown" for name, metric in figures.items() if metric.value is None}
    if kernel.bound is None:
        reasons["bound"] = kernel.bound_reason
    known = [m for m in (kernel.operational_intensity, kernel.bytes, kernel.flops) if m.value is not None]
    models = kernel.models
    return RooflinePart(
        flops=kernel.flops.value,
        bytes=kernel.bytes.value,
        operational_intensity=kernel.operational_intensity.value,
        achieved_gflops=kernel.achieved_gflops.value,
        achieved_gbps=kernel.achieved_gbps.value,
        bound=kernel.bound,
        position=kernel.position.value,
        flop_model=kernel.flop_model,
        models=FlopModelsPart(models.per_op.value, models.valu_width.value, models.ratio),
        exactness=known[0].exactness,
        exactness_of={name: metric.exactness for name, metric in figures.items() if metric.exactness},
        upper_of={name: metric.upper for name, metric in figures.items() if metric.upper is not None},
        partial=tuple(name for name, metric in figures.items() if metric.partial),
        missing=tuple(sorted({*kernel.flops.missing, *kernel.bytes.missing})),
        reasons=reasons,
        exceeds_ceiling=kernel.exceeds_ceiling,
    )


def _kernel(time: KernelTime) -> KernelPart:
    if time.workgroup is None or time.grid is None:
        return KernelPart(name=time.name, reason="the launch geometry is not recorded")
    groups = tuple(-(-g // max(w, 1)) for g, w in zip(time.grid, time.workgroup, strict=True))
    return KernelPart(
        name=time.name,
        grid=groups,
        block=time.workgroup,
        grid_work_items=time.grid,
        shape_count=time.shape_count,
    )


def _resources(resources: KernelResources) -> ResourcesPart:
    arch, accum = resources.arch_vgpr, resources.accum_vgpr
    return ResourcesPart(
        vgpr_per_thread=None if arch is None else arch + (accum or 0),
        arch_vgpr=arch,
        accum_vgpr=accum,
        sgpr_per_wave=resources.sgpr,
        lds_bytes=resources.lds_bytes,
        scratch_bytes=resources.scratch_bytes,
    )


def _occupancy(
    time: KernelTime, occupancy: Occupancy | NoOccupancy | None, wave_size: int | None
) -> OccupancyPart:
    from rpl_codeobject.occupancy import NoOccupancy  # here, so that documents without facts need it not

    threads = None
    if time.workgroup is not None:
        threads = time.workgroup[0] * time.workgroup[1] * time.workgroup[2]
    if occupancy is None or isinstance(occupancy, NoOccupancy):
        reason = occupancy.reason if occupancy else "the occupancy analyzer did not run"
        between = occupancy.between if occupancy else None
        return OccupancyPart(
            theoretical_range=between,
            threads_per_block=threads,
            wave_size=None if between else wave_size,
            reason=reason,
        )
    return OccupancyPart(
        theoretical=occupancy.fraction,
        threads_per_block=threads,
        wave_size=occupancy.wave_size,
        waves_per_simd=occupancy.waves_per_simd,
        max_waves_per_simd=occupancy.max_waves_per_simd,
        limiter=occupancy.limiter,
        next_threshold=_threshold(occupancy),
        mode=occupancy.mode,
    )


def _threshold(occupancy: Occupancy) -> str | None:
    """What must shrink for one more wave, such as "vgpr 72 -> 64"."""
    steps = [f"{t.resource} {t.current} -> {t.at_most}" for t in occupancy.next_threshold]
    return ", ".join(steps) or None


def _gpu(facts: ProfileFacts) -> GpuPart:
    device = facts.device
    if device is None:
        return GpuPart(wave_size=facts.wave_size, reason=facts.device_reason)
    peak = device.compute_ceiling("F32", Pipe.VALU, CeilingOrigin.SPEC)
    bandwidth = device.memory_ceiling("hbm", CeilingOrigin.SPEC)
    return GpuPart(
        architecture=device.architecture,
        product=device.product,
        wave_size=device.wave_size,
        compute_units=device.compute_units,
        theoretical_peak_flops=peak.peak_gflops * 1e9 if peak else None,
        memory_bandwidth_gbps=bandwidth.peak_gbps if bandwidth else None,
        clock_mhz=device.clock_mhz,
        partition=device.partition,
        reason="; ".join(device.unknown_facts) or None,
    )


def _critical_path(dag: GraphResult) -> CriticalPathPart:
    if dag.status != "available":
        return CriticalPathPart(reason=dag.reason)
    return CriticalPathPart(
        critical_path_ns=dag.critical_path_ns,
        dominant_symbol=dag.dominant_symbol,
        fraction=dag.fraction,
        speedup_ceiling=dag.speedup_ceiling,
        application_ceiling=dag.application_ceiling,
        application_ceiling_at_most=dag.application_ceiling_at_most,
        dominant_work=dag.dominant_work.name if dag.dominant_work else None,
        confidence=dag.sync_info,
    )


# ``analysis.json`` from the classifier's results.


def kernel_labels(
    times: Mapping[str, KernelTime],
    classifications: Mapping[str, Classification],
    rooflines: Mapping[str, KernelRooflineDoc],
    weights: Mapping[str, float],
    steps: NextSteps | None = None,
    *,
    extensions: Mapping[str, Any],
) -> KernelLabels:
    """One entry per classified kernel, in descending order of time."""
    kernels = tuple(
        _kernel_analysis(
            time,
            classifications[name],
            rooflines.get(name),
            weights.get(name),
            steps,
        )
        for name, time in times.items()
        if name in classifications
    )
    return KernelLabels(
        kernels=kernels,
        next_steps=steps.priorities if steps else (),
        extensions=extensions,
    )


def _kernel_analysis(
    time: KernelTime,
    classification: Classification,
    roofline: KernelRooflineDoc | None,
    weight: float | None,
    steps: NextSteps | None,
) -> KernelAnalysis:
    then = classification.label_by_active_lanes
    return KernelAnalysis(
        kernel=time.name,
        time_ms=time.total_ns / 1e6 if time.max_ns > 0 else None,
        operational_intensity=roofline.operational_intensity.value if roofline else None,
        roofline_position=roofline.position.value if roofline else None,
        critical_path_score=weight,
        bottleneck=label_name(classification.label),
        confidence=classification.confidence,
        reason=classification.reason,
        evidence=tuple(_rule(tested) for tested in classification.evidence),
        near_misses=tuple(_rule(tested) for tested in classification.near_misses),
        unknown=classification.unknown,
        headroom_fraction=classification.headroom_fraction,
        headroom_source=classification.headroom_source,
        headroom_reason=classification.headroom_reason,
        next_steps=steps.kernels.get(time.name, ()) if steps else (),
        remedy=steps.remedies.get(time.name) if steps else None,
        label_by_active_lanes=label_name(then) if then else None,
    )


def _rule(tested: TestedRule) -> RuleEvidence:
    return RuleEvidence(
        rule=tested.rule.id,
        label=label_name(tested.rule.label),
        explanation=tested.rule.explanation,
        conditions=tuple(_condition(part) for part in tested.conditions),
    )


def _condition(tested: TestedCondition) -> ConditionEvidence:
    metric = tested.metric
    return ConditionEvidence(
        quantity=tested.condition.quantity,
        comparison=tested.condition.comparison,
        threshold=tested.condition.threshold,
        source=tested.condition.source,
        value=metric.value,
        holds=tested.holds,
        exactness=metric.exactness,
        upper=metric.upper,
        formula=metric.formula,
        note=metric.note,
    )
