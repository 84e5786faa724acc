"""Documents while they are put together: plain mappings under the names of their contracts.

An analysis writes its documents from drafts and never makes the pydantic models, which would cost more than
analysing 100 000 dispatches. A draft is checked as strictly as its model would be (``check_draft``), and
becomes the model when somebody looks at it (``rpl_core.documents.bundle``). The parts that all documents
share are the models of the contracts to type checkers, and drafts at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core import __version__
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text.safety import encodable

if TYPE_CHECKING:
    from rpl_core.contracts.common import ArtefactDoc, DiagnosticDoc, ProvenanceDoc
    from rpl_core.devices import ResolvedDevice
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace


class Draft(dict[str, Any]):
    """Fields by name, readable like those of a model as far as they were given; plugins share them."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the draft has no {name!r}") from None

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("drafts are read-only")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


if not TYPE_CHECKING:
    ArtefactDoc = DiagnosticDoc = ProvenanceDoc = Draft


def check_draft(shape: Mapping[str, Any], draft: Mapping[str, Any]) -> dict[str, Any]:
    """The complete content of a document, defaults filled in, in the order of its fields.

    Raises pydantic's ``ValidationError`` and others where it does not follow its contract, or is no JSON.
    """
    from pydantic_core import SchemaValidator, to_json

    schema: Any = shape
    checked = SchemaValidator(schema).validate_python(draft)
    if not isinstance(checked, dict):
        raise TypeError(f"its shape gives {type(checked).__name__} where fields by name were expected")
    to_json(checked)
    return checked


def diagnostic_docs(diagnostics: Iterable[Diagnostic]) -> tuple[DiagnosticDoc, ...]:
    """Documents for ``diagnostics`` without repeats, in the order of their first occurrence."""
    from rpl_core.contracts import common

    return tuple(common.DiagnosticDoc.model_validate(draft) for draft in diagnostic_drafts(diagnostics))


def diagnostic_drafts(diagnostics: Iterable[Diagnostic]) -> tuple[DiagnosticDoc, ...]:
    """The same as drafts."""
    unique = dict.fromkeys(diagnostics)
    return tuple(
        DiagnosticDoc(
            code=d.code,
            severity=d.severity.value,
            fact=encodable(d.fact),
            cause=d.cause and encodable(d.cause),
            remedy=d.remedy and encodable(d.remedy),
            where=d.where and encodable(d.where),
            count=d.count,
        )
        for d in unique
    )


def provenance_doc(
    recording: Recording,
    device: ResolvedDevice,
    plugins: Iterable[str],
    root: Path | None,
    remarks: Iterable[str] = (),
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
        remarks=tuple(map(encodable, remarks)),
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
