"""Renderers turn the documents of a run into something to look at; they compute nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.interfaces.options import Options
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.section import ReportSection


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
