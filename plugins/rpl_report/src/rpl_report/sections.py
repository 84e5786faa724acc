"""The sections that plugins add: asked one by one, so that one that fails costs only itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from rpl_core.errors import PluginError, RplError
from rpl_core.interfaces.renderer import SectionOf
from rpl_core.interfaces.section import Block, Claim, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.text.table import counted
from rpl_core.values import frozen

__all__ = ["AnsweredSection", "claims_of", "explained_sections", "html_sections", "text_sections"]


@frozen
class AnsweredSection:
    """What a section answered: ``own`` is drawn by the plugin; with a ``problem`` there is nothing else."""

    name: str
    title: str
    own: str | None = None
    blocks: tuple[Block, ...] = ()
    problem: str | None = None


def text_sections(sections: Iterable[SectionOf], request: SectionRequest) -> Iterator[AnsweredSection]:
    """For the text report; sections that have nothing to say are left out."""
    return _answered(sections, lambda section: _own_or_blocks(section, section.text(request), request))


def html_sections(sections: Iterable[SectionOf], request: SectionRequest) -> Iterator[AnsweredSection]:
    """For the HTML report."""
    return _answered(sections, lambda section: _own_or_blocks(section, section.html(request), request))


def explained_sections(
    sections: Iterable[SectionOf], request: SectionRequest, kernel: str
) -> Iterator[AnsweredSection]:
    """For ``rpl explain``: what plugins have to say about one kernel."""
    return _answered(sections, lambda section: (None, section.explain(request, kernel)))


def claims_of(sections: Iterable[SectionOf], request: SectionRequest) -> tuple[Claim, ...]:
    """What plugins add to the verdict; one that fails adds nothing: its section says how it failed."""
    claims: list[Claim] = []
    for entry in sections:
        with suppress(RplError), plugin_boundary(entry.plugin, f"the section {entry.section.name!r}"):
            given = entry.section.claims(request)
            if not all(isinstance(claim, Claim) for claim in given):
                raise TypeError(f"claims were expected, not {given!r:.60}")
            claims += given
    return tuple(claims)


def _own_or_blocks(
    section: ReportSection, own: str | None, request: SectionRequest
) -> tuple[str | None, Any]:
    return own, section.blocks(request) if own is None else ()


def _answered(
    sections: Iterable[SectionOf], ask: Callable[[ReportSection], tuple[str | None, Any]]
) -> Iterator[AnsweredSection]:
    for entry in sections:
        section = entry.section
        try:
            with plugin_boundary(entry.plugin, f"the section {section.name!r}"):
                own, blocks = ask(section)
                _check(own, blocks)
        except PluginError as error:
            show_traceback(error)
            yield AnsweredSection(section.name, section.title, problem=error.fact)
        except RplError as error:
            yield AnsweredSection(
                section.name, section.title, problem=f"plugin {entry.plugin!r}: {error.one_line()}"
            )
        else:
            if own or blocks:
                yield AnsweredSection(section.name, section.title, own, tuple(blocks))


def _check(own: object, blocks: object) -> None:
    """Raises ``TypeError`` for what no report can draw."""
    if own is not None and not isinstance(own, str):
        raise TypeError(f"text or None was expected, not {type(own).__name__}")
    (own or "").encode()  # halves of surrogate pairs can't be written
    if not isinstance(blocks, (tuple, list)):
        raise TypeError(f"a tuple of blocks was expected, not {type(blocks).__name__}")
    for block in blocks:
        if isinstance(block, Table):
            _check_table(block)
        elif not isinstance(block, Paragraph) or not isinstance(block.text, str):
            raise TypeError(f"a Paragraph of text or a Table was expected, not {block!r:.60}")
        else:
            block.text.encode()


def _check_table(table: Table) -> None:
    if not table.columns or not all(isinstance(column, str) for column in table.columns):
        raise TypeError("a table needs columns with text")
    for row in table.rows:
        if len(row) != len(table.columns) or not all(isinstance(cell, str) for cell in row):
            raise TypeError(f"a row must hold {counted(len(table.columns), 'text')}, not {row!r:.60}")
        "".join(row).encode()
