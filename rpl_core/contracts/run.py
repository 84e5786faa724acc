"""``run.json``: the manifest of a run directory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import FailFast, Field

from rpl_core.contracts.common import DiagnosticDoc, Part


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
