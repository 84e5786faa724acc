"""A comparison or a history for continuous integration: annotations, a step summary, JUnit, a badge.

All of them say what the document says, and nothing more. Names of kernels, commands and files come from
recordings: each format escapes what would mean something to whoever reads it.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from rpl_compare.comparison.judging import item_name
from rpl_core.errors import UsageError
from rpl_core.text import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_compare.contract import CompareDocument, HistoryDocument, HistoryItem, ItemPart

__all__ = [
    "Result",
    "badge",
    "github_annotations",
    "github_summary",
    "junit",
    "result_of_comparison",
    "result_of_history",
]

#: What GitHub gives a job to write Markdown into, shown on the page of the run
#: (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
#: Items that are listed; the document holds all (chosen; GitHub shows ten annotations per step and kind).
_MOST_ANNOTATIONS, _MOST_ROWS = 10, 60
_LONGEST = 300
#: Outcomes in words, with what CI calls them.
_OUTCOMES: Mapping[str, tuple[str, str, str]] = {
    "pass": ("no slower", "notice", "brightgreen"),
    "regression": ("slower", "error", "red"),
    "inconclusive": ("can't tell", "warning", "yellow"),
    "no_verdict": ("no verdict", "warning", "lightgrey"),
}
_COLOURS = {"brightgreen": "#2b7a3d", "red": "#b3261e", "yellow": "#8a6100", "lightgrey": "#616161"}


@frozen
class Row:
    """One item: its figures as text, its verdict, and why."""

    name: str
    base: str
    new: str
    change: str
    verdict: str
    reason: str
    decides: bool


@frozen
class Result:
    """What every format says. ``titles`` head both figures; ``origin`` is set unless measured."""

    what: str
    outcome: str
    answer: str
    reasons: tuple[str, ...]
    titles: tuple[str, str]
    rows: tuple[Row, ...]
    origin: str | None
    worst_change: float | None


def result_of_comparison(document: CompareDocument, names: Mapping[str, str]) -> Result:
    """``names`` says how kernels are called."""
    from rpl_analysis.text import duration_ns

    gate = document.gate
    items = sorted((*document.application, *document.kernels), key=lambda item: not item.gated)

    def row(item: ItemPart) -> Row:
        change = "-" if item.change is None else f"{item.change:+.2%}"
        if item.ratio_low is not None and item.ratio_high is not None:
            change += f" ({item.ratio_low - 1:+.2%} to {item.ratio_high - 1:+.2%})"
        times = duration_ns(item.base.median_ns), duration_ns(item.new.median_ns)
        return Row(
            _called(item, names), *times, change, item.verdict, readable(item.reason, _LONGEST), item.gated
        )

    return Result(
        "rpl compare",
        gate.outcome,
        f"{_OUTCOMES[gate.outcome][0]} (limit {100 * gate.fail_above:g} %)",
        tuple(readable(reason, _LONGEST) for reason in gate.reasons),
        ("BASE", "NEW"),
        tuple(row(item) for item in items),
        _origin(document),
        gate.worst_change,
    )


def result_of_history(document: HistoryDocument, names: Mapping[str, str]) -> Result:
    from rpl_analysis.text import duration_ns

    def row(item: HistoryItem) -> Row:
        change = f"{item.last_ns / item.first_ns - 1:+.2%}" if item.first_ns else "-"
        times = duration_ns(item.first_ns), duration_ns(item.last_ns)
        return Row(_called(item, names), *times, change, item.verdict, readable(item.reason, _LONGEST), True)

    changes = [step.change for item in (*document.application, *document.kernels) for step in item.steps]
    return Result(
        "rpl compare --history",
        document.outcome,
        f"{_OUTCOMES[document.outcome][0]} (limit {100 * document.fail_above:g} %)",
        tuple(readable(reason, _LONGEST) for reason in document.reasons),
        ("first", "last"),
        tuple(row(item) for item in (*document.application, *document.kernels)),
        _origin(document),
        max(changes, default=None),
    )


def _called(item: ItemPart | HistoryItem, names: Mapping[str, str]) -> str:
    return readable(item_name(item.kind, item.name, dict(names)), _LONGEST)


def _origin(document: CompareDocument | HistoryDocument) -> str | None:
    origin = document.provenance.origin if document.provenance else None
    return None if origin == "measured" else origin


def github_annotations(result: Result) -> Iterator[str]:
    """Workflow commands: one for the answer, one for each item that decides it."""
    kind = _OUTCOMES[result.outcome][1]
    doubt = f" [{result.origin} data, not a measurement]" if result.origin else ""
    yield _command(kind, result.what, f"{result.answer}{doubt}. {' '.join(result.reasons[:3])}")
    wanted = {"error": "regressed", "warning": "inconclusive"}.get(kind)
    told = [row for row in result.rows if row.decides and row.verdict == wanted]
    for row in told[: _MOST_ANNOTATIONS - 1]:
        yield _command(kind, row.name, f"{row.change}: {row.reason}")


def _command(kind: str, title: str, message: str) -> str:
    """Values escaped as @actions/core does: data ends at a line feed, properties also at ":" and ","."""
    return f"::{kind} title={_escaped(title).replace(':', '%3A').replace(',', '%2C')}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_summary(result: Result) -> str:
    """Markdown for the page of a workflow run. Names stand in HTML elements, so that none is markup."""
    lines = [f"### {result.what}: {_markdown(result.answer)}", ""]
    if result.origin:
        lines += [f"**{_markdown(result.origin.upper())}** data, not a measurement of hardware.", ""]
    lines += [f"- {_markdown(reason)}" for reason in result.reasons[:8]]
    lines += ["", f"| item | {' | '.join(result.titles)} | change | verdict |", "|---|--:|--:|--:|---|"]
    for row in result.rows[:_MOST_ROWS]:
        figures = " | ".join(_markdown(cell) for cell in (row.base, row.new, row.change))
        verdict = row.verdict if row.decides else f"({row.verdict})"
        lines.append(f"| <code>{_markdown(row.name)}</code> | {figures} | {_markdown(verdict)} |")
    left_out = len(result.rows) - _MOST_ROWS
    lines += ["", f"{left_out} more in the document."] if left_out > 0 else []
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    """No element, no cell, no link, no emphasis: what Markdown reads becomes a character reference."""
    return "".join(f"&#{ord(sign)};" if sign in "|`*_[]~\\@#:" else html.escape(sign) for sign in text)


def append_summary(result: Result) -> Path | None:
    """Where it went; ``None`` where no job asks for one. Raises ``UsageError`` if it can't go there."""
    place = os.environ.get(SUMMARY_VARIABLE)
    if not place:
        return None
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(github_summary(result))
    except OSError as error:
        raise UsageError(
            f"{SUMMARY_VARIABLE} names {readable(place, 120)}, which can't be written: {error.strerror}",
            next_step="name a file that can, or unset the variable",
        ) from None
    return Path(place)


def junit(result: Result) -> str:
    """A suite with a case per item that decides, and one for the answer: a regression fails, doubt errs.

    What can't be told must not look like a success, so it is an error. XML has no place for control
    characters, not even escaped; ``readable`` has replaced them.
    """
    cases = [_case(row.name, row.verdict, row.reason, row.change) for row in result.rows if row.decides]
    outcome = {"regression": "regressed", "pass": "unchanged"}.get(result.outcome, result.outcome)
    cases.append(_case("answer", outcome, " ".join(result.reasons), result.answer))
    failures = sum("<failure " in case for case in cases)
    errors = sum("<error " in case for case in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    origin = escape(result.origin or "measured", {'"': "&quot;"})
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {counts}>",
            f'<testsuite name={quoteattr(result.what)} {counts} skipped="0">',
            f'<properties><property name="origin" value="{origin}"/></properties>',
            *cases,
            "</testsuite>",
            "</testsuites>",
            "",
        )
    )


def _case(name: str, verdict: str, reason: str, change: str) -> str:
    head = f"<testcase classname={quoteattr('rpl.compare')} name={quoteattr(name)}"
    if verdict in ("unchanged", "improved"):
        return f"{head}><system-out>{escape(f'{verdict}: {change}')}</system-out></testcase>"
    element = "failure" if verdict == "regressed" else "error"
    told = f"<{element} type={quoteattr(verdict)} message={quoteattr(change)}>{escape(reason)}</{element}>"
    return f"{head}>{told}</testcase>"


def badge(result: Result, suffix: str) -> str:
    """One line about the answer: an SVG, or what https://shields.io/badges/endpoint-badge reads.

    Raises ``UsageError`` for another suffix than ``.svg`` and ``.json``.
    """
    word, _, colour = _OUTCOMES[result.outcome]
    change = "" if result.worst_change is None else f" {result.worst_change:+.1%}"
    message = f"{word}{change}{f' ({result.origin})' if result.origin else ''}"
    if suffix == ".json":
        document = {"schemaVersion": 1, "label": "performance", "message": message, "color": colour}
        return json.dumps(document) + "\n"
    if suffix != ".svg":
        raise UsageError(
            f"a badge is written as .svg or .json, not {suffix!r}", next_step="name a file such as badge.svg"
        )
    return _badge_drawing("performance", message, _COLOURS[colour])


def _badge_drawing(label: str, message: str, colour: str) -> str:
    """Two boxes; texts are stretched to the room for them, whatever the font is."""
    widths = [7 * len(text) + 12 for text in (label, message)]
    left, right = widths
    title = escape(f"{label}: {message}")

    def text(words: str, begin: int, width: int) -> str:
        return (
            f'<text x="{begin + 6}" y="14" textLength="{width - 12}" lengthAdjust="spacingAndGlyphs">'
            f"{escape(words)}</text>"
        )

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{text(label, 0, left)}{text(message, left, right)}</g></svg>\n"
    )


def files_of(result: Result, junit_file: Path | None, badge_file: Path | None) -> Sequence[tuple[Path, str]]:
    """What is to be written where. Raises ``UsageError`` before anything is, if it can't be."""
    written = [(junit_file, junit(result))] if junit_file else []
    return [*written, *([(badge_file, badge(result, badge_file.suffix))] if badge_file else [])]
