"""Documents of a run and sections that plugins add to them; all are checked against their contracts.

The core asks for them after the analyzers, adds the envelope that all documents share (schema version,
provenance, diagnostics) and writes what they return. It knows no document and no field.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:  # plugins declare documents where `--help` asks them for options: no numpy for it
    from pydantic import BaseModel

    from rpl_core.contracts.common import Document
    from rpl_core.interfaces.analyzer import Fact, Facts
    from rpl_core.interfaces.options import Options
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.recording import Recording


@frozen(eq=False)
class DocumentContext:
    """What a document is made from. ``drafts`` holds the documents drafted before this one, by name.

    ``providers`` names the plugin that gave each fact; ``device_reason`` says why ``device`` is ``None``.
    """

    recording: Recording
    device: DeviceModel | None
    device_reason: str | None
    options: Options
    facts: Facts
    providers: Mapping[Fact[Any], str]
    drafts: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)


class DocumentContract(ABC):
    """The contract of a JSON file ``<name>.json``, shown by ``rpl schema NAME``."""

    name: str
    summary: str

    @abstractmethod
    def model(self) -> type[BaseModel]:
        """The pydantic model. Imported only where somebody looks at the file or its schema."""

    def found_in(self, directory: Path) -> str | None:
        """What to do with a directory that holds this file where a run was expected; ``None``: nothing."""
        _ = directory
        return None


class DocumentKind(DocumentContract):
    """One document of an analysis.

    ``after`` names documents that are drafted before this one. The ``leading`` document is the one that
    ``--json`` prints and of which ``--quiet`` prints the ``brief``.
    """

    after: tuple[str, ...] = ()
    leading: bool = False

    @abstractmethod
    def model(self) -> type[Document]:
        """The pydantic model of the whole document, envelope included."""

    @abstractmethod
    def shape(self) -> Mapping[str, Any]:
        """The model as data: what pydantic's validator is built from without making the model.

        It is derived from the model (``document_shapes`` of the test kit) and kept beside it as JSON, because
        making the models costs an analysis process more than analysing 100 000 dispatches.
        """

    @abstractmethod
    def draft(self, context: DocumentContext) -> Mapping[str, Any]:
        """The fields of the document without the envelope, as plain values."""

    def attachments(self, context: DocumentContext) -> Mapping[str, bytes | None]:
        """Files beside the document, by name; ``None`` removes one that an earlier analysis left."""
        _ = context
        return {}

    def with_section(
        self, draft: Mapping[str, Any], field: str, block: Any, kernels: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """``draft`` with a plugin's block in it.

        A field that the document keeps for it takes the block, another one stands in ``sections``.
        ``kernels`` are blocks by kernel name; a document without kernels has no place for them.
        """
        _ = kernels
        if field in self.model_fields():
            return {**draft, field: block}
        return {**draft, "sections": {**draft.get("sections", {}), field: block}}

    def model_fields(self) -> frozenset[str]:
        """The names of the document's fields, from its shape."""
        shape = self.shape()
        name = shape["schema"]["schema_ref"]
        return frozenset(next(d["fields"] for d in shape["definitions"] if d["ref"] == name))

    def places_of(self, schema: dict[str, Any], field: str) -> Sequence[dict[str, Any]]:
        """The members of the document's JSON schema that a section's schema replaces; empty: none."""
        place = schema["properties"].get(field)
        return () if place is None else (place,)

    def brief(self, content: Mapping[str, Any]) -> str:
        """The one line that ``--quiet`` prints. Raises ``BadDataError`` where there is nothing to say."""
        raise NotImplementedError(f"{content!r:.40} has no brief form")


class DocumentSection(ABC):
    """A block that a plugin adds to a document of another one.

    ``document`` and ``field`` say where: a field that the document keeps for it (such as one that it declares
    as null without the plugin), or else ``sections[field]``.
    """

    name: str
    summary: str
    document: str
    field: str

    @abstractmethod
    def model(self) -> type[BaseModel]:
        """The pydantic model of a block."""

    @abstractmethod
    def draft(self, context: DocumentContext) -> BaseModel | tuple[BaseModel, ...] | None:
        """The block, or blocks, of the whole application; ``None`` when there is nothing to say."""

    def kernels(self, context: DocumentContext) -> Mapping[str, BaseModel]:
        """Blocks per kernel, for documents whose kernels have the same field."""
        _ = context
        return {}
