"""``dag.json`` from the execution graph."""

from __future__ import annotations

from functools import cache
from math import isinf
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.documents.parts import DagDocument
from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.documents.drafts import Draft

if TYPE_CHECKING:
    from rpl_analysis.execution_graph.results.model import ExecutionGraph

#: Fields of the graph that have another name or form in the document, or stay out of it.
_TRANSLATED = ("origin", "several_paths", "domains", "columns", "dominance_shift_at", "reason")


def dag_document(graph: ExecutionGraph | None) -> DagDocument:
    """The document; ``None`` means that the analyzer did not run."""
    if graph is None or graph.reason is not None:
        return DagDocument(
            schema_version=SCHEMA_VERSION,
            status="unavailable",
            reason=graph.reason if graph else "the execution-graph analyzer did not run",
            symbols=(),
        )
    fields = {
        field.name: _plain(getattr(graph, field.name))
        for field in attrs.fields(type(graph))
        if field.name not in _TRANSLATED
    }
    return DagDocument(
        schema_version=SCHEMA_VERSION,
        status="available",
        origin=graph.origin.value if graph.origin else None,
        critical_path_count="several" if graph.several_paths else "one",
        clock_domains=_plain(graph.domains),
        dominance_shift_at=_finite(graph.dominance_shift_at),
        **fields,
    )


def _plain(value: Any) -> Any:
    """Values of the graph as contracts take them: drafts and tuples; an infinite factor becomes null."""
    kind: Any = type(value)
    names = _field_names(kind)
    if names is not None:
        return Draft({name: _plain(getattr(value, name)) for name in names})
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return _finite(value)


@cache
def _field_names(kind: Any) -> tuple[str, ...] | None:
    return tuple(field.name for field in attrs.fields(kind)) if attrs.has(kind) else None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and isinf(value) else value
