"""The four documents of a run, written together, and the columns of the whole graph where asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.documents import parts
from rpl_core.documents.drafts import as_model, check_drafts
from rpl_core.files.atomic import write_atomic
from rpl_core.process.storage import make_directory

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_analysis.contracts.roofline import RooflineDocument
    from rpl_analysis.execution_graph.full_columns import GraphColumns
    from rpl_core.contracts.common import Document

#: Every node and edge of the graph that dag.json sums up.
FULL_GRAPH = "dag_full.npz"
_NAMES = ("profile", "roofline", "dag", "analysis")


class Documents:
    """The four documents: models, or what an analysis drafted, which becomes models when it is looked at."""

    def __init__(
        self,
        *,
        profile: ProfileDocument,
        roofline: RooflineDocument,
        dag: DagDocument,
        analysis: AnalysisDocument,
        graph_columns: GraphColumns | None = None,
    ) -> None:
        self._models: dict[str, Any] = {
            "profile": profile,
            "roofline": roofline,
            "dag": dag,
            "analysis": analysis,
        }
        self._contents: Mapping[str, Mapping[str, Any]] = {}
        self.graph_columns = graph_columns

    @classmethod
    def drafted(cls, drafts: Mapping[str, Any], graph_columns: GraphColumns | None) -> Documents:
        """From a draft of each. Raises pydantic's ``ValidationError`` where one breaks its contract."""
        documents = cls.__new__(cls)
        documents._models = {}
        documents._contents = check_drafts(drafts)
        documents.graph_columns = graph_columns
        return documents

    @property
    def profile(self) -> ProfileDocument:
        model: ProfileDocument = self._model("profile")
        return model

    @property
    def roofline(self) -> RooflineDocument:
        model: RooflineDocument = self._model("roofline")
        return model

    @property
    def dag(self) -> DagDocument:
        model: DagDocument = self._model("dag")
        return model

    @property
    def analysis(self) -> AnalysisDocument:
        model: AnalysisDocument = self._model("analysis")
        return model

    def _model(self, name: str) -> Any:
        if name not in self._models:
            self._models[name] = as_model(name, self._contents[name])
        return self._models[name]

    def by_name(self) -> Mapping[str, Document]:
        return {name: self._model(name) for name in _NAMES}

    def content(self, name: str) -> Mapping[str, Any]:
        """Document ``name`` as its fields by name, complete; no model is made for it."""
        if name in self._contents:
            return self._contents[name]
        content: Mapping[str, Any] = self._model(name).model_dump()
        return content

    @property
    def diagnostics(self) -> tuple[parts.DiagnosticDoc, ...]:
        """Those of all four documents, without making a model for it."""
        return tuple(parts.DiagnosticDoc(**fields) for fields in self.content("profile")["diagnostics"])

    def json(self, name: str) -> str:
        """Document ``name`` as it is written; equal documents give equal text."""
        content = self._contents.get(name)
        if content is None:
            return to_json(self._model(name))
        from pydantic_core import to_json as json_of

        return json_of(content, indent=2).decode() + "\n"

    def write(self, directory: Path) -> None:
        """Write all four as ``<name>.json``; equal documents give equal bytes."""
        make_directory(directory)
        for name in _NAMES:
            write_atomic(directory / f"{name}.json", self.json(name))
        columns = directory / FULL_GRAPH
        if self.graph_columns is not None:
            write_atomic(columns, self.graph_columns.to_npz())
        else:
            # Columns of an earlier analysis would contradict the dag.json beside them.
            columns.unlink(missing_ok=True)


def to_json(document: Document) -> str:
    return document.model_dump_json(indent=2) + "\n"
