"""Sections that plugins add to what people read: the text report, the HTML report and ``explain``.

A section is given as blocks, which each report draws in its own way; where that is not enough, a plugin
draws its own HTML. Renderers draw them, and the documents of a run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from rpl_core.interfaces.options import Options
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


# Renderers turn the documents of a run into something to look at; they compute nothing.


@frozen
class SectionOf:
    """A section and the plugin that gave it."""

    plugin: str
    section: ReportSection


@frozen
class RenderRequest:
    """The validated documents by name; ``path_first`` puts the critical path before everything else.

    ``sections`` are what plugins add. ``timeline`` is what the command makes of the recording for renderers
    that want it, or ``timeline_reason`` says why not. ``width``: characters that a line of text may have;
    ``terminal``: it is for a terminal that may show colours, bold and bars.
    ``options`` are those of plugins that the command was called with. Where the run directory tells,
    ``command`` is the application's, ``recorded`` when and by what, ``files`` a name for what was analysed.
    """

    documents: Mapping[str, Any]
    path_first: bool = False
    timeline: Any = None
    timeline_reason: str | None = None
    width: int = 100
    terminal: bool = False
    sections: tuple[SectionOf, ...] = ()
    options: Options = attrs.field(factory=Options)
    command: tuple[str, ...] = ()
    recorded: str | None = None
    files: str | None = None


class Renderer(ABC):
    """One output format, chosen by ``rpl report --format NAME``."""

    name: str
    summary: str
    suffix: str  # file suffix such as ".txt"
    wants_timeline: bool = False  # true: the recording is read too, which takes time for long runs

    @abstractmethod
    def render(self, request: RenderRequest) -> str:
        """The whole output as text. Names from recordings are data: escape them for the format."""
