"""What a prompt says of a run: facts of the documents, quoted so that no text in them is an instruction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
from rpl_analysis.contracts.dag import DagDocument, ForecastPart, SymbolCriticality
from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
from rpl_analysis.contracts.roofline import KernelRooflineDoc, RooflineDocument
from rpl_analysis.text.figures import number
from rpl_codeobject.kernel_names import is_instance
from rpl_core.contracts.common import Document, MetricDoc
from rpl_core.errors import BadDataError
from rpl_core.text import printable, shorten
from rpl_core.values import frozen

_RUNS = re.compile(r"`{3,}")
_LONGEST_NAME = 240
_FOLDERS = re.compile(r"(?<![\w.<\"])/(?:[\w.@+~-]+/)+")


def fenced(text: str, language: str = "") -> str:
    """``text`` as a code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in _RUNS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


def inline(text: str, width: int = _LONGEST_NAME) -> str:
    """A name or sentence from a recording as one quoted line: no controls, no backticks, bounded."""
    one_line = " ".join(printable(text).replace("`", "'").split())
    return f"`{shorten(one_line, width)}`"


def sentence(text: str, width: int = _LONGEST_NAME) -> str:
    """The same without quotes, for reasons and evidence that rpl wrote itself around foreign names."""
    return inline(text, width).strip("`")


def without_folders(text: str) -> str:
    """``text`` with absolute paths cut down to file names: the user's folders are nobody's business."""
    return _FOLDERS.sub("", text)


# How figures look in a prompt: with unit, exactness and origin; what is missing says why.

NOT_COLLECTED = "not collected"
_LONGEST_VALUE = 2000
_MARKS = {"lower_bound": "at least ", "interval": "between ", "estimate": "about "}


def metric(part: MetricDoc, unit: str | None = None) -> str:
    """For example ``about 12.5 GB/s (measured, estimate)``."""
    if part.value is None:
        return missing(part.reason)
    mark = _MARKS.get(part.exactness or "", "")
    value = number(part.value)
    if part.exactness == "interval" and part.upper is not None:
        value += f" and {number(part.upper)}"
    labels = [text for text in (part.origin, part.exactness) if text and text != "exact"]
    shown = f"{mark}{value} {part.unit if unit is None else unit}".rstrip()
    return f"{shown} ({', '.join(labels)})" if labels else shown


def missing(reason: str | None) -> str:
    return f"{NOT_COLLECTED}: {sentence(reason)}" if reason else NOT_COLLECTED


def known(value: object, unit: str = "") -> str:
    """A plain value with its unit, or that it was not collected."""
    if value is None:
        return NOT_COLLECTED
    text = number(value) if isinstance(value, float) else str(value)
    return f"{text} {unit}".rstrip()


def bullets(rows: list[tuple[str, str]]) -> str:
    """One line per row, whatever the names and values of others hold."""
    return "\n".join(f"- {sentence(name)}: {sentence(value, _LONGEST_VALUE)}" for name, value in rows)


# The parts of a run's documents that are about one kernel.

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
