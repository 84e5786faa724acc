"""Sections that plugins add to what people read: the text report, the HTML report and ``explain``.

A section is given as blocks, which each report draws in its own way; where that is not enough, a plugin
draws its own HTML.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from rpl_core.values import frozen


@frozen
class Paragraph:
    """Running text, wrapped by the report. Names from recordings need no escaping here."""

    text: str


@frozen
class Table:
    """Rows of text under ``columns``; ``right`` names the columns that are right-aligned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()


Block: TypeAlias = "Paragraph | Table"


@frozen
class Place:
    """A line of source that a claim points at; ``file`` as the compiler recorded it."""

    file: str
    line: int
    text: str


@frozen
class Claim:
    """What a section adds to the verdict at the beginning of a report, in sentences.

    With ``kernel`` (a recorded name) ``text`` is why that kernel takes its time, and ``step`` and ``command``
    replace what is advised without the section; ``head`` heads the claim where the kernel has no entry.
    ``places`` are for editors and code scanning (``rpl report --format sarif``).
    """

    head: str
    text: str
    step: str
    command: str = ""
    kernel: str | None = None
    places: tuple[Place, ...] = ()


@frozen
class SectionRequest:
    """The documents by name, their fields as attributes, and how many characters a line of text may have.

    ``short_names`` maps a kernel's name to the form in which the report shows it, ``anchors`` to the id of
    its place on the HTML page, if it has one there.
    """

    documents: Mapping[str, Any]
    width: int = 100
    short_names: Mapping[str, str] = attrs.field(factory=dict)
    anchors: Mapping[str, str] = attrs.field(factory=dict)


class ReportSection(ABC):
    """One section. ``title`` heads it in HTML; sections come in plugin order behind the kernels."""

    name: str
    summary: str
    title: str

    @abstractmethod
    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        """What the text and HTML reports show; empty: the section is left out."""

    def text(self, request: SectionRequest) -> str | None:
        """The section as finished lines of text instead of ``blocks``; ``None`` to have them drawn."""
        _ = request
        return None

    def html(self, request: SectionRequest) -> str | None:
        """The whole section element as HTML instead of ``blocks``, inserted as it is.

        Whatever is from a recording must be escaped by the plugin. The page runs no script and no style but
        its own.
        """
        _ = request
        return None

    def claims(self, request: SectionRequest) -> tuple[Claim, ...]:
        """What decides the run as far as this section knows, the most important first."""
        _ = request
        return ()

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        """What ``rpl explain`` adds for one kernel. Proposers tell it to language models, too."""
        _ = (request, kernel)
        return ()
