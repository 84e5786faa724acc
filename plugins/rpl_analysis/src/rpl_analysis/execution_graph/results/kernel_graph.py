"""The kernel-level graph as networkx: kernels and copies with their weight and slack, and who follows whom.

Made from dag.json alone, so that a graph can be exported long after the recording is gone. The writers give
GraphML and DOT as text; equal documents give equal text.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.contracts.dag import SymbolCriticality

if TYPE_CHECKING:
    import networkx as nx

    from rpl_analysis.contracts.dag import DagDocument

__all__ = ["kernel_graph", "to_dot", "to_graphml"]

#: Everything but the characters of XML 1.0, section 2.2.
_NO_XML = re.compile("[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def kernel_graph(dag: DagDocument) -> nx.MultiDiGraph[str]:
    """One node per symbol; one edge per pair of symbols and kind of dependency, with count and gap.

    Nodes and edges come in the document's order. Without a path the graph is empty.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(
        critical_path_ns=dag.critical_path_ns or 0, makespan_ns=dag.makespan_ns or 0
    )
    for symbol in dag.symbols:
        graph.add_node(symbol.name, **_attributes(symbol))
    for edge in dag.symbol_edges:
        graph.add_edge(
            edge.source, edge.target, key=edge.kind, kind=edge.kind, count=edge.count, gap_ns=edge.gap_ns
        )
    return graph


def _attributes(symbol: SymbolCriticality) -> dict[str, str | int | float]:
    """Figures of a node; what is unknown is left out, since GraphML has no null."""
    figures = ((f.name, getattr(symbol, f.name)) for f in attrs.fields(SymbolCriticality))
    known = {name: value for name, value in figures if value is not None and name != "name"}
    return {**known, "on_critical_path": symbol.on_path_ns > 0}


def to_graphml(graph: nx.MultiDiGraph[str]) -> str:
    """GraphML; names keep every character that XML holds and that steers no terminal; others are U+FFFD."""
    import networkx as nx

    clean = nx.relabel_nodes(graph, {name: _xml_text(name) for name in graph}, copy=True)
    buffer = io.BytesIO()
    nx.write_graphml_xml(clean, buffer)
    return buffer.getvalue().decode("utf-8") + "\n"


def _xml_text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


def to_dot(graph: nx.MultiDiGraph[str]) -> str:
    """DOT for Graphviz: nodes by number with their name as label, critical ones drawn bold."""
    numbers = {name: i for i, name in enumerate(graph)}
    lines = ["digraph kernels {", "  node [shape=box];"]
    for name, attributes in graph.nodes(data=True):
        style = ", style=bold" if attributes.get("on_critical_path") else ""
        share = f"{100 * attributes.get('criticality_weight', 0):.1f} % of the critical path"
        lines.append(f'  n{numbers[name]} [label="{_quoted(name)}\\n{share}"{style}];')
    for source, target, attributes in graph.edges(data=True):
        label = _quoted(f"{attributes['count']} {attributes['kind']}")
        lines.append(f'  n{numbers[source]} -> n{numbers[target]} [label="{label}"];')
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """The inside of a DOT string: quotes and backslashes escaped, control characters gone."""
    printable = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
