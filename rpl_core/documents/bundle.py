"""The documents of a run: what an analysis drafted, or what was read back, written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import MissingError
from rpl_core.files.atomic import write_atomic
from rpl_core.process.storage import make_directory
from rpl_core.text.safety import harmless_json

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rpl_core.contracts.common import DiagnosticDoc, Document
    from rpl_core.interfaces.document import DocumentKind


class DocumentView(dict[str, Any]):
    """The content of a document, or of a part: fields as attributes, parts below as views.

    Making the models costs more than a small analysis; to show what rpl itself has just checked they are
    not needed. What is shown from a directory is read through the models.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the document has no {name!r} here") from None

    def __getitem__(self, name: str) -> Any:
        return _viewed(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        return _viewed(super().get(name, default))

    def items(self) -> Any:
        return [(name, _viewed(value)) for name, value in super().items()]

    def values(self) -> Any:
        return [_viewed(value) for value in super().values()]


def _viewed(value: Any) -> Any:
    if type(value) is dict:
        return DocumentView(value)
    if isinstance(value, (tuple, list)):
        return tuple(map(_viewed, value))
    return value


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
        return DocumentView(self.content(name))

    def by_name(self) -> Mapping[str, Document]:
        """All models."""
        return {name: self.model(name) for name in self._kinds}

    def json(self, name: str) -> str:
        """Document ``name`` as it is written; equal documents give equal text."""
        from pydantic_core import to_json as json_of

        return harmless_json(json_of(self.content(name), indent=2).decode()) + "\n"

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
