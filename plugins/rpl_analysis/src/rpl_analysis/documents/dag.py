"""``dag.json`` from the execution graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.contracts.record import plain_values
from rpl_analysis.documents.parts import DagDocument
from rpl_core.contracts import SCHEMA_VERSION

if TYPE_CHECKING:
    from rpl_analysis.execution_graph.results.model import ExecutionGraph

#: Fields of the graph that have another name or form in the document, or stay out of it.
_TRANSLATED = ("origin", "several_paths", "domains", "columns", "dominance_shift_at", "reason")


def dag_document(graph: ExecutionGraph | None, name: str | None = None) -> DagDocument:
    """The document of the work of the range ``name``, or of all; without a graph the analyzer did not run."""
    if graph is None or graph.reason is not None:
        return DagDocument(
            schema_version=SCHEMA_VERSION,
            status="unavailable",
            reason=graph.reason if graph else "the execution-graph analyzer did not run",
            symbols=(),
            range=name,
        )
    fields = {
        field.name: plain_values(getattr(graph, field.name))
        for field in attrs.fields(type(graph))
        if field.name not in _TRANSLATED
    }
    return DagDocument(
        schema_version=SCHEMA_VERSION,
        status="available",
        origin=graph.origin.value if graph.origin else None,
        critical_path_count="several" if graph.several_paths else "one",
        clock_domains=plain_values(graph.domains),
        range=name,
        dominance_shift_at=plain_values(graph.dominance_shift_at),
        **fields,
    )
