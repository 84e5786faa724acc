"""What the application would gain if chosen kernels were faster, one by one and all at once.

The graph of a run is solved again; gains of several are never just added up. Times are int64 nanoseconds of
the whole application. Model: durations do not depend on what runs beside them; launches, host time and waits
stay as recorded (docs/reference/execution-graph.md, 3.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.weights import scale_symbol, shrunk, weigh
from rpl_analysis.execution_graph.dependencies.all_edges import find_dependencies
from rpl_analysis.execution_graph.dependencies.graph_launches import link_lanes
from rpl_analysis.execution_graph.graph import work_nodes
from rpl_analysis.execution_graph.results.confidence import other_lengths
from rpl_analysis.execution_graph.results.domain import graph_of, machine_domains, path_length
from rpl_analysis.execution_graph.results.unknown_order import ChangedWork, LaneOrder, order_is_known
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_analysis.critical_path.model import DispatchGraph, NodeWeights
    from rpl_analysis.execution_graph.results.domain import Domain
    from rpl_core.model.trace import Trace

__all__ = ["Answer", "FasterKernel", "Prediction", "ReplayedRun"]


@frozen
class FasterKernel:
    """``name`` as displayed (or a copy direction) runs ``factor`` times as fast; infinity makes it free."""

    name: str
    factor: float


@frozen
class Answer:
    """The application under ``changes``; ``speedup`` is recorded / predicted, ``None`` if nothing is left.

    ``gain_at_most_ns`` is the upper end where the order of streams is unknown; the others are the lower one.
    """

    changes: tuple[FasterKernel, ...]
    application_ns: int
    gain_ns: int
    speedup: float | None
    gain_at_most_ns: int | None = None


@frozen
class Prediction:
    """``recorded_ns`` is the makespan of the machine with the longest path, as the documents report it.

    ``together`` answers all changes at once; it is the only answer where one was asked.
    """

    recorded_ns: int
    machine: str
    machines: int
    alone: tuple[Answer, ...]
    together: Answer


class ReplayedRun:
    """The dependency graph of one run, ready to be solved again."""

    def __init__(self, trace: Trace, *, include_copies: bool) -> None:
        """Raises ``BadDataError`` if the trace has no work with usable times."""
        nodes = work_nodes(trace, include_copies=include_copies)
        if not len(nodes) or not bool((nodes.end_ns > nodes.begin_ns).any()):
            raise BadDataError("no dispatch with usable times was recorded")
        dependencies = find_dependencies(trace, nodes)
        domains = machine_domains(trace, nodes, dependencies)
        graphs = [graph_of(domain, domain.trusted_edges()) for domain in domains]
        lengths = [path_length(graph, weigh(graph, "exec_only")) for graph in graphs]
        longest = lengths.index(max(lengths))
        self._domain: Domain = domains[longest]
        self._graph: DispatchGraph = graphs[longest]
        self._recorded: NodeWeights = weigh(self._graph, "as_executed")
        self._machines = len(domains)
        self._number = _symbol_numbers(self._domain)
        known = order_is_known(self._domain, dependencies.sync_info, dependencies.unresolved)
        links = None if known else link_lanes(nodes, dependencies.program)
        certain = links is None or other_lengths(self._domain, links).certain_only_ns is None
        self._order = LaneOrder(known=known, certain=certain)
        self.at_most = known and dependencies.sync_info == "none"

    @property
    def names(self) -> tuple[str, ...]:
        """Kernels and copy directions that ran, sorted."""
        return tuple(sorted(self._number))

    def predict(self, changes: Sequence[FasterKernel]) -> Prediction:
        """Answers for ``changes``, each of another name of ``names``: alone in their order, and together.

        Raises ``BadDataError`` for a factor that is not above zero.
        """
        return Prediction(
            recorded_ns=path_length(self._graph, self._recorded),
            machine=self._domain.machine,
            machines=self._machines,
            alone=tuple(self._answer((change,)) for change in changes) if len(changes) > 1 else (),
            together=self._answer(tuple(changes)),
        )

    def _answer(self, changes: tuple[FasterKernel, ...]) -> Answer:
        recorded = path_length(self._graph, self._recorded)
        if not self._order.known:
            return self._ranged(changes, recorded)
        predicted = path_length(self._graph, self._changed(self._recorded, changes))
        return Answer(changes, predicted, recorded - predicted, recorded / predicted if predicted else None)

    def _changed(self, weights: NodeWeights, changes: tuple[FasterKernel, ...]) -> NodeWeights:
        for change in changes:
            number = self._number[change.name]
            weights = scale_symbol(self._graph, weights, self._domain.symbol, number, change.factor)
        return weights

    def _ranged(self, changes: tuple[FasterKernel, ...], recorded_ns: int) -> Answer:
        work = self._domain.work
        saved = np.zeros(len(work), dtype=np.int64)
        for change in changes:
            launches = np.flatnonzero(work.symbol == self._number[change.name])
            duration = work.end_ns[launches] - work.begin_ns[launches]
            saved[launches] = duration - shrunk(duration, change.factor)
        path = None
        if self._order.certain:
            path = path_length(self._graph, self._changed(weigh(self._graph, "exec_only"), changes))
        rows = np.flatnonzero(saved)
        gain = ChangedWork.of(work, rows).gain_range(saved[rows], recorded_ns, path)
        left = recorded_ns - gain.least_ns
        return Answer(changes, left, gain.least_ns, recorded_ns / left if left else None, gain.most_ns)


def _symbol_numbers(domain: Domain) -> Mapping[str, int]:
    ran = set(domain.symbol.tolist())
    return {name: number for number, name in enumerate(domain.work.symbol_names) if number in ran}
