"""Troubleshooting speaks of messages and codes that exist, and of every code there is."""

from __future__ import annotations

import ast
import re

from rpl_core.plugins.discovery import PluginStatus

PAGE = "docs/troubleshooting.md"
GAP = "\0"
FAMILIES = (
    *("analyzer", "api", "att", "clock", "code", "collect", "compare", "copy", "counter", "counters", "csv"),
    *("device", "dispatch", "document", "graph", "ingest", "kernel"),
    *("optimize", "origin", "pcsampling", "phases", "plugin", "rocpd", "roofline", "run", "selftest"),
    *("table", "time", "torch"),
)
CODE = re.compile(rf"(?:{'|'.join(FAMILIES)})\.(?!csv$|json$|item$|hsaco$)[a-z_]+[a-z]")
NO_CODES = {"collect.no_counter", "selftest.html"}  # the beginning of several codes, and a page
#: Shown by the shell or by click, not by a string of ours.
OTHERS = {"rpl: command not found", "No such option …"}


def _message_spans(documentation) -> list[str]:
    text = documentation.page(PAGE).read_text(encoding="utf-8").split("## Notes and warnings")[0]
    firsts = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return [span for cell in firsts for span in documentation.spans(cell)]


def _fragments(message: str) -> list[str]:
    return [part for part in re.split(r"…", message) if part.strip()]


def _says(template: str, fragments: list[str]) -> bool:
    """Whether the literal parts of ``template`` hold all fragments in order."""
    position = 0
    for fragment in fragments:
        found = template.find(fragment.strip(), position)
        if found < 0:
            return False
        position = found + len(fragment.strip())
    return True


def test_every_message_occurs_in_the_code(documentation):
    templates = documentation.templates()
    spans = [span for span in _message_spans(documentation) if " " in span and span not in OTHERS]
    assert len(spans) > 60
    unknown = [s for s in spans if not any(_says(t, _fragments(s)) for t in templates)]
    assert unknown == [], "\n".join(unknown)


def test_the_exit_codes_beside_messages_exist(documentation):
    from rpl_core.errors import ExitCode
    from rpl_vmreplay.replay.outcome import EXIT_CODES

    text = documentation.page(PAGE).read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"` \((\d+)\)", text)}
    assert codes
    assert codes <= {int(code) for code in ExitCode} | set(EXIT_CODES.values())


def _codes_in_code(documentation) -> set[str]:
    """Strings of the form ``family.finding``, and the two codes that are composed from a status."""
    strings = set(documentation.templates())
    codes = {text for text in strings if CODE.fullmatch(text)} - NO_CODES
    unloaded = set(PluginStatus) - {PluginStatus.LOADED, PluginStatus.DISABLED}
    assert {f"run.artefact_{GAP}", f"plugin.{GAP}"} <= strings
    composed = {"run.artefact_missing", "run.artefact_changed", *(f"plugin.{s.value}" for s in unloaded)}
    return codes | composed


def test_codes_are_recognised_where_they_are_made(documentation):
    """Whatever is handed to a ``Diagnostic`` as its code belongs to a family that is known here."""
    made = set()
    for _, tree in documentation.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Diagnostic":
                values = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "code")]
                made |= {text for v in values if (text := documentation.template(v)) and GAP not in text}
    assert len(made) > 40
    assert made - _codes_in_code(documentation) == set()


def test_every_diagnostic_code_is_explained_and_none_is_invented(documentation):
    rows = documentation.rows(PAGE, "code", "what it means for you")
    explained = [code for row in rows for code in documentation.spans(row[0])]
    assert len(explained) == len(set(explained))
    codes = _codes_in_code(documentation)
    assert codes - set(explained) == set(), "explain these codes in docs/troubleshooting.md"
    assert set(explained) - codes == set(), "these codes exist no more"
