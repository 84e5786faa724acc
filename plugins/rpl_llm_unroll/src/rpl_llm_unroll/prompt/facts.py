"""The parts of a run's documents that are about one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rpl_analysis.contracts.analysis import AnalysisDocument
from rpl_analysis.contracts.dag import DagDocument
from rpl_analysis.contracts.profile import ProfileDocument
from rpl_analysis.contracts.roofline import RooflineDocument
from rpl_codeobject.kernel_names import is_instance
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rpl_analysis.contracts.analysis import KernelAnalysis
    from rpl_analysis.contracts.dag import ForecastPart, SymbolCriticality
    from rpl_analysis.contracts.profile import KernelProfile
    from rpl_analysis.contracts.roofline import KernelRooflineDoc
    from rpl_core.contracts.common import Document

T = TypeVar("T")
D = TypeVar("D", bound="Document")


@frozen(eq=False)
class RunFacts:
    """Everything is ``None`` that the run does not have. ``kernel`` is the source's name for it."""

    kernel: str
    recorded: str | None
    profile: ProfileDocument | None
    roofline: RooflineDocument | None
    dag: DagDocument | None
    analysis: AnalysisDocument | None

    @property
    def models(self) -> Mapping[str, Document]:
        """The documents that the run has, by name."""
        found = {"profile": self.profile, "roofline": self.roofline, "dag": self.dag}
        every: dict[str, Document | None] = {**found, "analysis": self.analysis}
        return {name: model for name, model in every.items() if model is not None}

    @property
    def timing(self) -> KernelProfile | None:
        return None if self.profile is None else self._entry(self.profile.kernels, lambda k: k.name)

    @property
    def work(self) -> KernelRooflineDoc | None:
        return None if self.roofline is None else self._entry(self.roofline.kernels, lambda k: k.name)

    @property
    def criticality(self) -> SymbolCriticality | None:
        if self.dag is None:
            return None
        return self._entry([s for s in self.dag.symbols if s.kind == "kernel"], lambda k: k.name)

    @property
    def forecast(self) -> ForecastPart | None:
        if self.dag is None:
            return None
        return self._entry([f for f in self.dag.forecasts if f.kind == "kernel"], lambda k: k.name)

    @property
    def label(self) -> KernelAnalysis | None:
        return None if self.analysis is None else self._entry(self.analysis.kernels, lambda k: k.kernel)

    @property
    def origin(self) -> str | None:
        """Whether the figures of the run are measured, modelled or synthetic."""
        provenance = self.profile.provenance if self.profile is not None else None
        return provenance.origin if provenance is not None else None

    @property
    def architecture(self) -> str | None:
        return self.profile.gpu.architecture if self.profile is not None else None

    def _entry(self, entries: Sequence[T], name: Callable[[T], str]) -> T | None:
        exact = next((entry for entry in entries if name(entry) == self.recorded), None)
        if exact is not None or self.recorded is not None:
            return exact
        # Documents are ordered by weight, so the first instance is the heaviest.
        return next((entry for entry in entries if is_instance(name(entry), self.kernel)), None)


def run_facts(documents: Mapping[str, Any], kernel: str, recorded: str | None) -> RunFacts:
    """Validate the documents. Raises ``BadDataError`` for one that breaks its contract."""
    return RunFacts(
        kernel=kernel,
        recorded=recorded,
        profile=_document(documents, "profile", ProfileDocument),
        roofline=_document(documents, "roofline", RooflineDocument),
        dag=_document(documents, "dag", DagDocument),
        analysis=_document(documents, "analysis", AnalysisDocument),
    )


def _document(documents: Mapping[str, Any], name: str, model: type[D]) -> D | None:
    from pydantic import ValidationError

    plain = documents.get(name)
    if plain is None:
        return None
    try:
        return model.model_validate(plain)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadDataError(f"{name}.json does not follow its schema: {place}: {first['msg']}") from None
