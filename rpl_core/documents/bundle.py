"""The four documents of a run, written together, and the columns of the whole graph where asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.contracts.analysis import AnalysisDocument
from rpl_core.contracts.dag import DagDocument
from rpl_core.contracts.profile import ProfileDocument
from rpl_core.contracts.roofline import RooflineDocument
from rpl_core.files.atomic import write_atomic
from rpl_core.process.storage import make_directory

if TYPE_CHECKING:
    from rpl_core.analysis.execution_graph.full_columns import GraphColumns
    from rpl_core.contracts.common import Document

#: Every node and edge of the graph that dag.json sums up.
FULL_GRAPH = "dag_full.npz"


@attrs.frozen(eq=False)
class Documents:
    profile: ProfileDocument
    roofline: RooflineDocument
    dag: DagDocument
    analysis: AnalysisDocument
    graph_columns: GraphColumns | None = None

    def by_name(self) -> Mapping[str, Document]:
        return {
            "profile": self.profile,
            "roofline": self.roofline,
            "dag": self.dag,
            "analysis": self.analysis,
        }

    def write(self, directory: Path) -> None:
        """Write all four as ``<name>.json``; equal documents give equal bytes."""
        make_directory(directory)
        for name, document in self.by_name().items():
            write_atomic(directory / f"{name}.json", to_json(document))
        columns = directory / FULL_GRAPH
        if self.graph_columns is not None:
            write_atomic(columns, self.graph_columns.to_npz())
        else:
            # Columns of an earlier analysis would contradict the dag.json beside them.
            columns.unlink(missing_ok=True)


def to_json(document: Document) -> str:
    return document.model_dump_json(indent=2) + "\n"
