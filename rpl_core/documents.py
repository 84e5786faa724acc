"""Documents of an analysis: drafted, sections of plugins put in, checked against contracts, written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rpl_core import __version__
from rpl_core.errors import MissingError, PluginError, RplError
from rpl_core.files import make_directory, write_atomic
from rpl_core.interfaces.document import DocumentKind, DocumentSection
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.schedule import MOST_INVENTED
from rpl_core.text import encodable, harmless_json
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rpl_core.contracts.common import ArtefactDoc, DiagnosticDoc, Document, ProvenanceDoc
    from rpl_core.devices import ResolvedDevice
    from rpl_core.interfaces.document import DocumentContext
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace
    from rpl_core.plugins.host import Contribution

T = TypeVar("T")
_ENVELOPE = ("schema_version", "provenance", "diagnostics", "sections")


@frozen
class Drafts:
    """Drafts by name in the order of ``kinds``, files beside them, and what went wrong."""

    kinds: tuple[Contribution[DocumentKind], ...]
    drafts: Mapping[str, Mapping[str, Any]]
    attachments: Mapping[str, bytes | None]
    problems: tuple[Diagnostic, ...]


def kinds_of(contributions: Iterable[Contribution[Any]]) -> tuple[Contribution[DocumentKind], ...]:
    """The documents among what plugins offer."""
    return tuple(c for c in contributions if isinstance(c.value, DocumentKind))


def _in_order(kinds: Iterable[Contribution[DocumentKind]]) -> Sequence[Contribution[DocumentKind]]:
    """Each behind those that it comes ``after``."""
    left = list(kinds)
    ordered: list[Contribution[DocumentKind]] = []
    while left:
        waiting = {c.value.name for c in left}
        ready = [c for c in left if not waiting.intersection(c.value.after) - {c.value.name}]
        for contribution in ready or left[:1]:  # of a circle the first goes first
            ordered.append(contribution)
            left.remove(contribution)
    return ordered


def sections_of(contributions: Iterable[Contribution[Any]]) -> tuple[Contribution[DocumentSection], ...]:
    return tuple(c for c in contributions if isinstance(c.value, DocumentSection))


def draft_all(context: DocumentContext, contributions: Sequence[Contribution[Any]]) -> Drafts:
    """Every document and section; one that fails costs itself and is reported."""
    problems: list[Diagnostic] = []
    kinds = kinds_of(contributions)
    drafts: dict[str, Mapping[str, Any]] = {}
    attachments: dict[str, bytes | None] = {}
    for kind in _in_order(kinds):
        with_drafts = attrs.evolve(context, drafts=MappingProxyType(drafts))
        draft = _guarded(kind, "document", problems, _draft, kind.value, with_drafts)
        if draft is not None:
            drafts[kind.value.name] = draft
            beside = _guarded(kind, "document", problems, _attachments, kind.value, with_drafts)
            attachments |= beside or {}
    by_name = {kind.value.name: kind.value for kind in kinds}
    for section in sections_of(contributions):
        owner = by_name.get(section.value.document)
        if owner is None:
            problems.append(_homeless(section))
        if owner is None or owner.name not in drafts:
            continue  # it failed and was reported
        filled = _guarded(section, "section", problems, _with_section, section.value, owner, drafts, context)
        drafts[owner.name] = filled or drafts[owner.name]
    return Drafts(kinds, drafts, attachments, tuple(problems))


def _draft(kind: DocumentKind, context: DocumentContext) -> Mapping[str, Any]:
    draft: object = kind.draft(context)
    if not isinstance(draft, Mapping):
        raise TypeError(f"a mapping of fields was expected, not {type(draft).__name__}")
    return Fields(draft)


def _attachments(kind: DocumentKind, context: DocumentContext) -> Mapping[str, bytes | None]:
    beside = kind.attachments(context)
    for name, content in beside.items():
        if not isinstance(name, str) or not name or Path(name).name != name or name.endswith(".json"):
            raise ValueError(f"{name!r} is no name of a file beside the document")
        if content is not None and not isinstance(content, bytes):
            raise TypeError(f"bytes were expected for {name}, not {type(content).__name__}")
    return beside


def _with_section(
    section: DocumentSection,
    owner: DocumentKind,
    drafts: Mapping[str, Mapping[str, Any]],
    context: DocumentContext,
) -> Mapping[str, Any]:
    context = attrs.evolve(context, drafts=MappingProxyType(drafts))
    block, kernels = section.draft(context), section.kernels(context)
    if block is None and not kernels:
        return drafts[owner.name]
    draft = drafts[owner.name]
    known = {kernel["name"] for kernel in draft.get("kernels", ()) if isinstance(kernel, Mapping)}
    if len(invented := kernels.keys() - known) > MOST_INVENTED:
        raise RplError(f"it gave blocks of {len(invented)} kernels that the document {owner.name} has not")
    if section.field in _ENVELOPE or {**draft.get("sections", {}), **draft}.get(section.field) is not None:
        raise RplError(f"the document {owner.name} has its own {section.field!r}")
    blocks = {name: _as_json_values(section, part) for name, part in kernels.items()}
    return Fields(owner.with_section(draft, section.field, _as_json_values(section, block), blocks))


def _homeless(section: Contribution[DocumentSection]) -> Diagnostic:
    return Diagnostic(
        "document.failed",
        f"the section {section.value.name!r} of plugin {section.plugin!r} is left out: "
        f"no installed plugin offers the document {section.value.document!r}",
        severity=Severity.WARNING,
        where=f"plugin {section.plugin}",
        remedy="install the plugin that offers it, or report the name to the plugin's author",
    )


def _as_json_values(section: DocumentSection, block: Any) -> Any:
    """A block as JSON holds it. Raises ``RplError`` for one that is not of the section's model."""
    if block is None:
        return None
    if isinstance(block, tuple):
        return tuple(_as_json_values(section, part) for part in block)
    if not isinstance(block, section.model()):
        raise RplError(f"it gave {type(block).__name__} where {section.model().__name__} was promised")
    plain: dict[str, Any] = block.model_dump(mode="json", warnings="error")
    json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
    return plain


def check_all(
    drafts: Drafts, envelope: Mapping[str, Any]
) -> tuple[dict[str, Mapping[str, Any]], tuple[Diagnostic, ...]]:
    """Complete contents by name; a draft that breaks its contract is left out and reported."""
    problems: list[Diagnostic] = []
    contents: dict[str, Mapping[str, Any]] = {}
    for kind in drafts.kinds:
        name = kind.value.name
        if name in drafts.drafts:
            whole = {**envelope, **drafts.drafts[name]}
            content = _guarded(kind, "document", problems, _checked, kind.value, whole)
            if content is not None:
                contents[name] = content
    return contents, tuple(problems)


def _checked(kind: DocumentKind, draft: Mapping[str, Any]) -> Mapping[str, Any]:
    return check_draft(kind.shape(), draft)


def _guarded(
    offered: Contribution[Any], noun: str, problems: list[Diagnostic], work: Callable[..., T], *arguments: Any
) -> T | None:
    """``work(*arguments)``, or ``None`` and a problem that names the plugin."""
    what = f"{noun} {offered.value.name!r}"
    try:
        with plugin_boundary(offered.plugin, what):
            return work(*arguments)
    except PluginError as error:
        show_traceback(error)
        problem = error.problem
    except RplError as error:
        problem = error.one_line()
    problems.append(
        Diagnostic(
            "document.failed",
            f"the {what} of plugin {offered.plugin!r} is left out: {problem}",
            severity=Severity.ERROR,
            where=f"plugin {offered.plugin}",
            remedy="run with RPL_TRACEBACK=1 and report it to the plugin's author",
        )
    )
    return None


# Documents and their parts without models, which cost an analysis process more than a small analysis does.


class Fields(dict[str, Any]):
    """The content of a document, or of a part: fields by name and as attributes, parts below likewise.

    It stands for the model in drafts, and where rpl shows what it has just checked; what is shown from a
    directory is read through the models. Read-only: plugins share it.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"there is no field {name!r} here")
        value = self[name]
        vars(self)[name] = value  # the next look at it comes no more to this method
        return value

    def __getitem__(self, name: str) -> Any:
        return _as_fields(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        return _as_fields(super().get(name, default))

    def items(self) -> Any:
        return [(name, _as_fields(value)) for name, value in super().items()]

    def values(self) -> Any:
        return [_as_fields(value) for value in super().values()]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("documents are read-only")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


def _as_fields(value: Any) -> Any:
    if type(value) is dict:
        return Fields(value)
    return tuple(map(_as_fields, value)) if isinstance(value, (tuple, list)) else value


if not TYPE_CHECKING:
    ArtefactDoc = DiagnosticDoc = ProvenanceDoc = Fields


def check_draft(shape: Mapping[str, Any], draft: Mapping[str, Any]) -> dict[str, Any]:
    """The complete content of a document, defaults filled in, in the order of its fields.

    Raises pydantic's ``ValidationError`` and others where it does not follow its contract, or is no JSON.
    """
    engine = _pydantic_engine()
    checked = engine.SchemaValidator(shape).validate_python(draft)
    if not isinstance(checked, dict):
        raise TypeError(f"its shape gives {type(checked).__name__} where fields by name were expected")
    engine.to_json(checked)
    return checked


def _pydantic_engine() -> Any:
    """The compiled part of ``pydantic_core``, without the package around it.

    The package describes schemas to type checkers by a hundred classes: 35 of the 45 ms that importing it
    takes. When it is imported later, with pydantic, it takes this module.
    """
    package, name = "pydantic_core", "pydantic_core._pydantic_core"
    if name in sys.modules:
        return sys.modules[name]
    around = find_spec(package)
    spec = around and PathFinder.find_spec(name, around.submodule_search_locations)
    if not spec or not spec.loader:  # a version that is built otherwise
        return import_module(package)
    engine = module_from_spec(spec)
    spec.loader.exec_module(engine)
    return sys.modules.setdefault(name, engine)  # whole: another thread may look


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


# The documents of a run: what an analysis drafted, or what was read back, written together.


class Documents:
    """Documents by name, as their content; one becomes a model when it is looked at.

    ``kinds`` are in the order in which they are written, ``contents`` complete and checked. ``attachments``
    are files beside them (``None``: one that must go). ``diagnostics`` are those of the analysis.
    """

    def __init__(
        self,
        kinds: Sequence[DocumentKind],
        contents: Mapping[str, Mapping[str, Any]],
        *,
        diagnostics: Sequence[DiagnosticDoc] = (),
        attachments: Mapping[str, bytes | None] | None = None,
    ) -> None:
        self._kinds = {kind.name: kind for kind in kinds if kind.name in contents}
        self._contents = contents
        self._models: dict[str, Any] = {}
        self.diagnostics = tuple(diagnostics)
        self._attachments = attachments or {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._kinds)

    @property
    def leading(self) -> DocumentKind | None:
        """The kind that stands for all of them on the command line."""
        return next((kind for kind in self._kinds.values() if kind.leading), None)

    def content(self, name: str) -> Mapping[str, Any]:
        """Document ``name`` as its fields by name, complete; no model is made for it."""
        if name not in self._kinds:
            raise MissingError(
                f"there is no document {name!r}",
                cause="no installed plugin makes it, or the plugin that does failed",
                next_step="see `rpl plugins list`; `pip install rocm-perf-lab` brings all documents",
            )
        return self._contents[name]

    def model(self, name: str) -> Any:
        """Document ``name`` as its pydantic model. Raises ``MissingError`` where there is none."""
        if name not in self._models:
            content = self.content(name)
            self._models[name] = self._kinds[name].model().model_validate(content)
        return self._models[name]

    def view(self, name: str) -> Any:
        """Document ``name`` as something with the attributes of its model, made without it."""
        return Fields(self.content(name))

    def by_name(self) -> Mapping[str, Document]:
        """All models."""
        return {name: self.model(name) for name in self._kinds}

    def json(self, name: str) -> str:
        """Document ``name`` as it is written; equal documents give equal text."""
        return harmless_json(_pydantic_engine().to_json(self.content(name), indent=2).decode()) + "\n"

    def write(self, directory: Path) -> None:
        """Write each as ``<name>.json``; equal documents give equal bytes."""
        make_directory(directory)
        for name in self._kinds:
            write_atomic(directory / f"{name}.json", self.json(name))
        for name, data in self._attachments.items():
            if data is not None:
                write_atomic(directory / name, data)
            else:  # one of an earlier analysis would contradict the documents beside it
                (directory / name).unlink(missing_ok=True)


def to_json(document: BaseModel) -> str:
    """A model as it is written."""
    return harmless_json(document.model_dump_json(indent=2)) + "\n"
