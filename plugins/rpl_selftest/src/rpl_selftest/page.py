"""The self-test as a page for a browser: one file, no script, nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_selftest.contract import LinePart, SelftestDocument

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; } th, td { border-bottom: 1px solid #ccc; padding: .4em .6em;
text-align: left; vertical-align: top; } td.confirmed { color: #1a7f37; } td.refuted { color: #b3261e;
font-weight: bold; } td.not { color: #6b6b6b; } code { white-space: nowrap; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COLUMNS = ("check", "outcome", "expected", "found, or why it was not possible", "rests on it", "runs", "s")


def html_page(document: SelftestDocument) -> str:
    rows = "\n".join(_row(line) for line in document.lines)
    facts = "".join(f"<li>{escape(name)}: {escape(value)}</li>" for name, value in _facts(document))
    head = "".join(f"<th>{escape(column)}</th>" for column in _COLUMNS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>rpl selftest: {escape(document.verdict)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>rpl selftest: {escape(document.verdict)}</h1>\n"
        f"<p>{escape(summary(document))}</p>\n<ul>{facts}</ul>\n"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></body></html>\n"
    )


def summary(document: SelftestDocument) -> str:
    """One line; what the outcomes are about stands in it."""
    return (
        f"{document.confirmed} confirmed, {document.refuted} refuted, {document.not_possible} not possible "
        f"({document.about})"
    )


def _facts(document: SelftestDocument) -> Iterator[tuple[str, str]]:
    yield "GPU", f"{document.product or 'not known'} ({document.device or 'no device that rpl knows'})"
    yield "profiler", document.profiler or "not known"
    yield "rpl", document.rpl_version
    yield "date", document.date
    yield "mode", f"--{document.mode}, {document.seconds:.0f} s"


def _row(line: LinePart) -> str:
    kind = line.outcome.partition(" ")[0]
    essential = "" if line.essential else " (not essential)"
    return (
        f"<tr><td>{escape(line.check)}{essential}</td>"
        f'<td class="{kind}">{escape(line.outcome)}</td><td>{escape(line.expected)}</td>'
        f"<td>{escape(line.found)}</td><td><code>{escape(line.document)}</code></td>"
        f"<td>{escape(line.runs)}</td><td>{line.seconds:.1f}</td></tr>"
    )
