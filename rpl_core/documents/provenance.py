"""Who computed a document from which files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core import __version__
from rpl_core.documents.parts import ArtefactDoc, ProvenanceDoc
from rpl_core.text.safety import encodable

if TYPE_CHECKING:
    from rpl_core.devices.resolve import ResolvedDevice
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace


def provenance_doc(
    recording: Recording, device: ResolvedDevice, plugins: Iterable[str], root: Path | None
) -> ProvenanceDoc:
    """``root`` is the run directory that paths are given relative to; other paths keep only their names."""
    return ProvenanceDoc(
        tool_version=__version__,
        origin=recording.origin.value if recording.traces else "measured",
        device=device.model.name if device.model else None,
        device_source=device.source,
        overrides=device.model.overrides if device.model else (),
        artefacts=tuple(doc for trace in recording.traces for doc in artefact_docs(trace, root)),
        plugins=tuple(plugins),
    )


def artefact_docs(trace: Trace, root: Path | None) -> Iterable[ArtefactDoc]:
    """The files that ``trace`` was read from."""
    hashes = trace.source.sha256 or (None,) * len(trace.source.paths)
    for path, sha256 in zip(trace.source.paths, hashes, strict=True):
        yield ArtefactDoc(
            path=encodable(_shown(Path(path), root)),
            sha256=sha256,
            format=trace.source.format,
            role=trace.role.value,
            origin=trace.origin.value,
        )


def _shown(path: Path, root: Path | None) -> str:
    """Documents travel: they name files as the run directory does, never where this machine keeps them."""
    if root is not None and path.resolve().is_relative_to(root.resolve()):
        return str(path.resolve().relative_to(root.resolve()))
    return path.name
