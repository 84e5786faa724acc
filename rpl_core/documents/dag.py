"""``dag.json`` from the execution graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.contracts.common import SCHEMA_VERSION
from rpl_core.contracts.dag import (
    ClockDomainPart,
    DagDocument,
    EdgeCount,
    PathSegment,
    SymbolCriticality,
)

if TYPE_CHECKING:
    from rpl_core.analysis.execution_graph.model import ExecutionGraph
    from rpl_core.contracts.common import DiagnosticDoc, ProvenanceDoc


def dag_document(
    graph: ExecutionGraph | None, *, provenance: ProvenanceDoc, diagnostics: tuple[DiagnosticDoc, ...]
) -> DagDocument:
    """The document; ``None`` means that the analyzer did not run."""
    if graph is None or graph.reason is not None:
        return DagDocument(
            schema_version=SCHEMA_VERSION,
            status="unavailable",
            reason=graph.reason if graph else "the execution-graph analyzer did not run",
            provenance=provenance,
            diagnostics=diagnostics,
        )
    return DagDocument(
        schema_version=SCHEMA_VERSION,
        status="available",
        origin=graph.origin.value if graph.origin else None,
        run=graph.run,
        sync_info=graph.sync_info,
        nodes=graph.nodes,
        edges=tuple(EdgeCount(**attrs.asdict(edge)) for edge in graph.edges),
        inconsistent_edges=graph.inconsistent_edges,
        chain_overlaps=graph.chain_overlaps,
        critical_path_ns=graph.critical_path_ns,
        makespan_ns=graph.makespan_ns,
        dominant_symbol=graph.dominant_symbol,
        fraction=graph.fraction,
        speedup_ceiling=graph.speedup_ceiling,
        critical_path_count="several" if graph.several_paths else "one",
        clock_domains=tuple(ClockDomainPart(**attrs.asdict(domain)) for domain in graph.domains),
        segments=tuple(PathSegment(**attrs.asdict(segment)) for segment in graph.segments),
        segments_left_out=graph.segments_left_out,
        symbols=tuple(SymbolCriticality(**attrs.asdict(symbol)) for symbol in graph.symbols),
        provenance=provenance,
        diagnostics=diagnostics,
    )
