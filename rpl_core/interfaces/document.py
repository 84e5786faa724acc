"""Documents of a run and sections that plugins add to them; both are checked against their contract.

The core runs them after the analyzers, adds the envelope that all documents share (schema version,
provenance, diagnostics) and writes what they return. It knows no document and no field.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.interfaces.fact import Fact, Facts
from rpl_core.interfaces.options import Options
from rpl_core.model.device import DeviceModel
from rpl_core.model.recording import Recording

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import CoreSchema

    from rpl_core.contracts.common import Document

__all__ = ["DocumentContext", "DocumentKind", "DocumentSection"]


@attrs.frozen(eq=False)
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
    drafts: Mapping[str, Mapping[str, Any]]


class DocumentKind(ABC):
    """One document of an analysis, written as ``<name>.json``.

    ``after`` names documents that are drafted before this one.
    """

    name: str
    summary: str
    after: tuple[str, ...] = ()

    @abstractmethod
    def model(self) -> type[Document]:
        """The pydantic contract. Imported only where somebody looks at the document or its schema."""

    @abstractmethod
    def shape(self) -> CoreSchema:
        """The contract as data (``rpl_core.contracts.shapes``), so that drafts are checked without models."""

    @abstractmethod
    def draft(self, context: DocumentContext) -> Mapping[str, Any]:
        """The fields of the document without the envelope, as plain values."""

    def attachments(self, context: DocumentContext) -> Mapping[str, bytes | None]:
        """Files beside the document, by name; ``None`` removes one that an earlier analysis left."""
        _ = context
        return {}


class DocumentSection(ABC):
    """A block that a plugin adds to a document of another one.

    ``document`` and ``field`` say where: a field that the document keeps for it (such as one that it declares
    as null without the plugin), or else ``sections[field]``. For fields of each kernel, ``kernels`` maps a
    kernel's name to its block.
    """

    name: str
    summary: str
    document: str
    field: str

    @abstractmethod
    def model(self) -> type[BaseModel]:
        """The pydantic contract of the block."""

    @abstractmethod
    def draft(self, context: DocumentContext) -> BaseModel | None:
        """The block of the whole application, already validated; ``None`` when there is nothing to say."""

    def kernels(self, context: DocumentContext) -> Mapping[str, BaseModel]:
        """Blocks per kernel, for documents whose kernels have the same field."""
        _ = context
        return {}
