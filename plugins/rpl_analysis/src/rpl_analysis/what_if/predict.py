"""Solve the graph of a run again with some kernels faster; gains of several are never just added up.

Model: durations do not depend on what runs beside them; launches, host time and waits stay as recorded
(critical_path.md, 1.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.critical_path.solve import advance, critical_path_ns
from rpl_analysis.critical_path.weights import scale_symbol, weigh
from rpl_analysis.execution_graph.dependences import find_dependences
from rpl_analysis.execution_graph.domain import graph_of, machine_domains
from rpl_analysis.execution_graph.nodes import work_nodes
from rpl_analysis.what_if.model import Answer, Prediction
from rpl_core.errors import BadDataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_analysis.critical_path.model import DispatchGraph, NodeWeights
    from rpl_analysis.execution_graph.domain import Domain
    from rpl_analysis.what_if.model import FasterKernel
    from rpl_core.model.trace import Trace

__all__ = ["ReplayedRun"]


class ReplayedRun:
    """The dependence graph of one run, ready to be solved again."""

    def __init__(self, trace: Trace, *, include_copies: bool) -> None:
        """Raises ``BadDataError`` if the trace has no work with usable times."""
        nodes = work_nodes(trace, include_copies=include_copies)
        if not len(nodes) or not bool((nodes.end_ns > nodes.begin_ns).any()):
            raise BadDataError("no dispatch with usable times was recorded")
        domains = machine_domains(trace, nodes, find_dependences(trace, nodes))
        graphs = [graph_of(domain, domain.trusted_edges()) for domain in domains]
        lengths = [_length(graph, weigh(graph, "exec_only")) for graph in graphs]
        longest = lengths.index(max(lengths))
        self._domain: Domain = domains[longest]
        self._graph: DispatchGraph = graphs[longest]
        self._recorded: NodeWeights = weigh(self._graph, "as_executed")
        self._machines = len(domains)
        self._number = _symbol_numbers(self._domain)

    @property
    def names(self) -> tuple[str, ...]:
        """Kernels and copy directions that ran, sorted."""
        return tuple(sorted(self._number))

    def predict(self, changes: Sequence[FasterKernel]) -> Prediction:
        """Answers for ``changes``, each of another name of ``names``: alone in their order, and together.

        Raises ``BadDataError`` for a factor that is not above zero.
        """
        return Prediction(
            recorded_ns=_length(self._graph, self._recorded),
            machine=self._domain.machine,
            machines=self._machines,
            alone=tuple(self._answer((change,)) for change in changes) if len(changes) > 1 else (),
            together=self._answer(tuple(changes)),
        )

    def _answer(self, changes: tuple[FasterKernel, ...]) -> Answer:
        weights = self._recorded
        for change in changes:
            number = self._number[change.name]
            weights = scale_symbol(self._graph, weights, self._domain.symbol, number, change.factor)
        recorded, predicted = _length(self._graph, self._recorded), _length(self._graph, weights)
        return Answer(changes, predicted, recorded - predicted, recorded / predicted if predicted else None)


def _length(graph: DispatchGraph, weights: NodeWeights) -> int:
    contraction = graph.contraction
    return critical_path_ns(contraction, advance(contraction, weights.total_ns, weights.edge_lag_ns))


def _symbol_numbers(domain: Domain) -> Mapping[str, int]:
    ran = set(domain.symbol.tolist())
    return {name: number for number, name in enumerate(domain.work.symbol_names) if number in ran}
