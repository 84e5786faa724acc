"""The four documents as the core knows them: contract, draft, what stands beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_analysis.contracts.graph import GraphResult
from rpl_analysis.contracts.record import plain_values
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
from rpl_analysis.range_option import RANGE
from rpl_analysis.text.names import linker_names
from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.errors import BadDataError
from rpl_core.interfaces.document import DocumentContext, DocumentContract, DocumentKind

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_analysis.contracts.ranks_document import RanksDocument
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RooflineDocument
    from rpl_analysis.contracts.what_if import WhatIfDocument

__all__ = [
    *("FULL_GRAPH_FILE", "AnalysisKind", "DagKind", "ProfileKind", "RanksContract", "RooflineKind"),
    "WhatIfContract",
]

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
        from rpl_analysis.documents.from_facts import ProfileFacts, profile_of

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
            own = [{**k, field: kernels[k["name"]]} if k["name"] in kernels else k for k in draft["kernels"]]
            draft = {**draft, "kernels": tuple(own)}
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
        from rpl_analysis.documents.from_facts import kernel_labels

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
        from rpl_analysis.contracts.ranks_document import RanksDocument

        return RanksDocument


class WhatIfContract(DocumentContract):
    name = "what-if"
    summary = "what `rpl what-if --json` prints"

    def model(self) -> type[WhatIfDocument]:
        from rpl_analysis.contracts.what_if import WhatIfDocument

        return WhatIfDocument
