"""Edges between nodes as columns: who waits for whom, why, how sure that is, and the lag that stays."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]

__all__ = ["Confidence", "EdgeKind", "EdgeTable", "join_edges", "no_edges"]


class Confidence(IntEnum):
    """How sure an edge is: from an API rule with all arguments known, from a rule with exceptions, or not."""

    CERTAIN = 0
    PROBABLE = 1
    GUESS = 2


class EdgeKind(IntEnum):
    """Why a node waits (docs/reference/execution-graph.md, 2). The first two are the order inside a lane."""

    STREAM = 0
    QUEUE = 1
    GRAPH_LAUNCH = 2
    EVENT = 3
    MEASURED_EVENT = 4
    HOST_SYNC = 5
    BLOCKING_CALL = 6
    NULL_STREAM = 7
    HOST_ORDER = 8
    INFERRED = 9


@frozen(eq=False)
class EdgeTable:
    """One entry per edge; ``source`` and ``target`` are node rows, ``lag_ns`` is not negative."""

    source: Int64Column
    target: Int64Column
    kind: NDArray[np.int8]
    confidence: NDArray[np.int8]
    lag_ns: Int64Column

    def __len__(self) -> int:
        return int(self.source.shape[0])

    def pick(self, which: NDArray[np.bool_] | Int64Column) -> EdgeTable:
        """The edges that a mask or an index array selects."""
        return EdgeTable(
            source=self.source[which],
            target=self.target[which],
            kind=self.kind[which],
            confidence=self.confidence[which],
            lag_ns=self.lag_ns[which],
        )

    @classmethod
    def of_kind(
        cls,
        source: Int64Column,
        target: Int64Column,
        kind: EdgeKind,
        confidence: Confidence | NDArray[np.int8],
        lag_ns: Int64Column | None = None,
    ) -> EdgeTable:
        """Edges that share a kind, and a confidence unless it comes per edge."""
        return cls(
            source=source.astype(np.int64),
            target=target.astype(np.int64),
            kind=np.full(source.size, kind, dtype=np.int8),
            confidence=np.broadcast_to(np.asarray(confidence, dtype=np.int8), source.shape),
            lag_ns=np.zeros(source.size, dtype=np.int64) if lag_ns is None else lag_ns,
        )


def no_edges() -> EdgeTable:
    """A table without edges."""
    nothing = np.zeros(0, dtype=np.int64)
    return EdgeTable.of_kind(nothing, nothing, EdgeKind.EVENT, Confidence.CERTAIN)


def join_edges(tables: Sequence[EdgeTable]) -> EdgeTable:
    """All edges, in the order of the tables."""
    if not tables:
        return no_edges()
    return EdgeTable(
        source=np.concatenate([table.source for table in tables]),
        target=np.concatenate([table.target for table in tables]),
        kind=np.concatenate([table.kind for table in tables]),
        confidence=np.concatenate([table.confidence for table in tables]),
        lag_ns=np.concatenate([table.lag_ns for table in tables]),
    )
