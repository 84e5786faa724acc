"""The result of the execution graph; what ``dag.json`` says of it stands in ``contracts.graph``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field

from rpl_analysis.contracts import INSIDE
from rpl_analysis.contracts.dag import GraphResult
from rpl_core.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.results.full_columns import GraphColumns

__all__ = ["ExecutionGraph", "WorkOnPath"]


@frozen(eq=False)
class WorkOnPath:
    """Which rows of the trace's ``dispatches`` and ``copies`` are on the critical path that is reported.

    ``copies`` has no row where copies are not part of the graph.
    """

    dispatches: NDArray[np.bool_]
    copies: NDArray[np.bool_]


@frozen(kw_only=True)
class ExecutionGraph(GraphResult):
    """The graph of one timing run, where they were asked for with the columns of every node and edge."""

    on_path: WorkOnPath | None = field(default=None, metadata=INSIDE, eq=False)  # None: there is no path
    columns: GraphColumns | None = field(default=None, metadata=INSIDE)
