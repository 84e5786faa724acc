"""Section on what plugins say about the kernel, quoted; one that fails costs only its own part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.interfaces.section import Paragraph, SectionRequest, Table
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.text.table import counted
from rpl_llm_unroll.prompt.figures import missing
from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import fenced, inline, sentence, without_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_core.interfaces.renderer import SectionOf
    from rpl_llm_unroll.prompt.facts import RunFacts
    from rpl_optimize.interfaces.proposer import ProposalRequest

_TITLE = "What plugins say"
_LONGEST_CELL, _LONGEST_LINE = 240, 2000
#: Some hundred rows. One plugin must not fill the prompt (chosen).
_LONGEST_ANSWER = 12_000


def plugins_section(request: ProposalRequest, facts: RunFacts) -> Section:
    """What the installed sections explain about the kernel, in the order of their plugins."""
    if facts.profile is None:
        return Section(_TITLE, missing("no run was given"))
    kernel = facts.recorded if facts.timing is None else facts.timing.name
    if kernel is None:
        return Section(_TITLE, missing("the run has no figures of this kernel"))
    asked = SectionRequest({**facts.models, **request.models})
    answers = [_answer(entry, asked, kernel, request) for entry in request.sections]
    text = "\n\n".join(answer for answer in answers if answer)
    return Section(_TITLE, text or missing("no plugin knows more of the kernel"))


def _answer(entry: SectionOf, asked: SectionRequest, kernel: str, request: ProposalRequest) -> str:
    """Why a section failed is for the user: the text of an exception may differ from call to call."""
    try:
        # Blocks are looked at in here as well: attrs checks no types, and a plugin may return anything.
        with plugin_boundary(entry.plugin, f"the section {entry.section.name!r}"):
            head = f"Plugin {inline(entry.plugin)}, {inline(entry.section.title)}:"
            lines = [line for block in entry.section.explain(asked, kernel) for line in _lines(block)]
    except InterruptedRunError:
        raise
    except RplError as error:
        show_traceback(error)
        request.note(f"warning: left out of the prompt: {error.one_line()}")
        return f"Plugin {inline(entry.plugin)}: {missing('one of its sections failed')}"
    return f"{head}\n\n{fenced(_bounded(lines))}" if lines else ""


def _lines(block: object) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield _quoted(block.text, _LONGEST_LINE)
    elif isinstance(block, Table):
        for row in (block.columns, *block.rows):
            yield sentence(" | ".join(_quoted(cell, _LONGEST_CELL) for cell in row), _LONGEST_LINE)
    else:
        raise TypeError(f"a Paragraph or a Table was expected, not {type(block).__name__}")


def _quoted(text: str, width: int) -> str:
    return sentence(without_folders(text[: 4 * width]), width)


def _bounded(lines: list[str]) -> str:
    left, shown = _LONGEST_ANSWER, 0
    while shown < len(lines) and len(lines[shown]) < left:
        left -= len(lines[shown]) + 1
        shown += 1
    rest = [f"... {counted(len(lines) - shown, 'more line')}"] if shown < len(lines) else []
    return "\n".join([*lines[:shown], *rest])
