"""``dag.json`` from the execution graph."""

from __future__ import annotations

from typing import Any

from rpl_analysis.contracts.graph import GraphResult
from rpl_analysis.contracts.record import plain_values
from rpl_analysis.documents.parts import DagDocument
from rpl_core.contracts import SCHEMA_VERSION


def dag_document(graph: GraphResult | None, name: str | None = None) -> DagDocument:
    """The document of the work of the range ``name``, or of all; without a graph the analyzer did not run."""
    if graph is None:
        graph = GraphResult(status="unavailable", reason="the execution-graph analyzer did not run")
    fields: dict[str, Any] = {**plain_values(graph), "range": name}
    return DagDocument(schema_version=SCHEMA_VERSION, **fields)
