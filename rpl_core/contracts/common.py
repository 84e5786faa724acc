"""Parts that every document shares: metrics, diagnostics, provenance, the document base; and ``run.json``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from rpl_core.contracts import SCHEMA_MAJOR as SCHEMA_MAJOR
from rpl_core.contracts import SCHEMA_VERSION as SCHEMA_VERSION

OriginName = Literal["measured", "modelled", "synthetic"]
ExactnessName = Literal["exact", "lower_bound", "interval", "estimate"]


class Part(BaseModel):
    """Base of everything inside a document: strict, frozen, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, from_attributes=True)


class MetricDoc(Part):
    """A figure with its unit, origin and exactness; ``value`` is null exactly when ``reason`` says why."""

    value: float | None
    unit: str
    exactness: ExactnessName | None = None
    origin: OriginName | None = None
    formula: str | None = None
    counters: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    upper: float | None = None
    source: str | None = None
    reason: str | None = None
    note: str | None = None
    partial: bool = False  # an estimate of which a part is unknown


class DiagnosticDoc(Part):
    """Something the reader of the document should know: fact, likely cause, remedy."""

    code: str
    severity: Literal["info", "warning", "error"]
    fact: str
    cause: str | None = None
    remedy: str | None = None
    where: str | None = None
    count: int | None = None


class ArtefactDoc(Part):
    """A file that figures were taken from. ``path`` is relative to the run directory where there is one."""

    path: str
    sha256: str | None = None
    format: str
    role: Literal["timing", "reference", "counters", "thread_trace"]
    origin: OriginName


class ProvenanceDoc(Part):
    """Who computed the document from what."""

    tool: str = "rpl"
    tool_version: str | None = None
    origin: OriginName | None = None
    device: str | None = None
    device_source: str | None = None
    overrides: tuple[str, ...] = ()
    artefacts: tuple[ArtefactDoc, ...] = ()
    plugins: tuple[str, ...] = ()  # "name version" of every plugin that contributed
    remarks: tuple[str, ...] = ()  # what plugins say of the machine


class Document(Part):
    """The envelope of every document of an analysis. ``sections`` holds what plugins added, by name."""

    schema_version: str = Field(pattern=r"^1\.[0-9]+$")
    provenance: ProvenanceDoc | None = None
    diagnostics: tuple[DiagnosticDoc, ...] = ()
    sections: dict[str, Any] = Field(default_factory=dict)


# ``run.json``: the manifest of a run directory.


class ArtefactEntry(Part):
    """A file of a pass, relative to the run directory."""

    path: str
    sha256: str
    bytes: int


class RecordingEntry(ArtefactEntry):
    """A file that was analysed where it lay; ``argument`` counts the folders and files that were named."""

    argument: int = 0


class PassEntry(Part):
    """One execution of the application. ``state`` tells how far it got."""

    name: str
    role: Literal["timing", "reference", "counters", "thread_trace"]
    state: Literal["planned", "complete", "failed"]
    directory: str
    command: Annotated[tuple[str, ...], FailFast()]
    counters: Annotated[tuple[str, ...], FailFast()] = ()
    exit_status: int | None = None
    wall_s: float | None = None
    process_ms: float | None = None
    artefacts: Annotated[tuple[ArtefactEntry, ...], FailFast()] = ()
    log: str | None = None
    error: str | None = None


class RunManifest(Part):
    """What was run, with what, and what came of it. ``state`` "incomplete" can still be analysed.

    "recorded": every pass finished, the documents are not written yet; then it is "complete".
    """

    schema_version: str = Field(default="1.0", pattern=r"^1\.[0-9]+$")
    tool_version: str
    state: Literal["running", "recorded", "complete", "incomplete"]
    reason: str | None = None
    created_utc: str
    command: Annotated[tuple[str, ...], FailFast()]
    collector: str
    collector_version: str | None = None
    device: str | None = None
    device_source: str | None = None
    options: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    passes: Annotated[tuple[PassEntry, ...], FailFast()] = ()
    recordings: Annotated[tuple[RecordingEntry, ...], FailFast()] = ()  # analysed, not recorded
    plugins: Annotated[tuple[str, ...], FailFast()] = ()
    diagnostics: Annotated[tuple[DiagnosticDoc, ...], FailFast()] = ()
