"""What CI gets of a comparison, read back by parsers: JUnit, badges, annotations and the summary.

Results are drawn, with names that mean something to each of the formats.
"""

from __future__ import annotations

import html
import json
import random
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rpl_compare.ci import (
    Result,
    Row,
    append_summary,
    badge,
    files_of,
    github_annotations,
    github_summary,
    junit,
)
from rpl_core.errors import UsageError

VERDICTS = ("unchanged", "improved", "regressed", "inconclusive")
#: Outcome -> words, GitHub's kind, colours of both badges, the verdict that annotations name.
OUTCOMES = {
    "pass": ("no slower", "notice", "brightgreen", "#2b7a3d", None),
    "regression": ("slower", "error", "red", "#b3261e", "regressed"),
    "inconclusive": ("can't tell", "warning", "yellow", "#8a6100", "inconclusive"),
    "no_verdict": ("no verdict", "warning", "lightgrey", "#616161", "inconclusive"),
}
NAMES = ("plain", 'a"b<c>&d', "x|y`z`", "50%, a: b", "[l](u) *e* _f_ ~g~ #h @i \\")


def _result(rng: random.Random, outcome: str, rows: int) -> Result:
    drawn = [
        Row(
            name=f"{rng.choice(NAMES)} {number}",
            base=f"{number} ms",
            new=f"{number + 1} ms",
            change=rng.choice(("+1.00%", "-", "<&>")),
            verdict=rng.choice(VERDICTS),
            reason=rng.choice(("so <b>", "50 % & more")),
            decides=rng.random() < 0.7,
        )
        for number in range(rows)
    ]
    reasons = tuple(f"reason {number} <i>" for number in range(rng.randint(1, 10)))
    origin = rng.choice((None, "synthetic"))
    worst = rng.choice((None, 0.0312, -0.2))
    answer = f"{OUTCOMES[outcome][0]} (limit 3 %)"
    return Result("rpl compare", outcome, answer, reasons, ("BASE", "NEW"), tuple(drawn), origin, worst)


def _results() -> list[Result]:
    rng = random.Random(1)
    return [_result(rng, outcome, rows) for outcome in OUTCOMES for rows in (0, 1, 5, 14, 60, 61, 70)]


def test_junit_has_a_case_for_each_item_that_decides_and_one_for_the_answer() -> None:
    for result in _results():
        document = ET.fromstring(junit(result))
        (suite,) = document
        cases = suite.findall("testcase")
        deciding = [row for row in result.rows if row.decides]
        assert [case.get("name") for case in cases] == [*(row.name for row in deciding), "answer"]
        assert {case.get("classname") for case in cases} == {"rpl.compare"}
        failed = [row.verdict == "regressed" for row in deciding] + [result.outcome == "regression"]
        doubtful = [row.verdict == "inconclusive" for row in deciding]
        doubtful.append(result.outcome in ("inconclusive", "no_verdict"))
        assert [case.find("failure") is not None for case in cases] == failed
        assert [case.find("error") is not None for case in cases] == doubtful
        for element in (document, suite):
            counts = tuple(element.get(name) for name in ("tests", "failures", "errors"))
            assert counts == (str(len(cases)), str(sum(failed)), str(sum(doubtful)))
        assert (suite.get("name"), suite.get("skipped")) == ("rpl compare", "0")
        origin = suite.find("properties/property")
        assert origin is not None
        assert (origin.get("name"), origin.get("value")) == ("origin", result.origin or "measured")
        for row, case in zip(deciding, cases, strict=False):
            (told,) = case
            if row.verdict in ("unchanged", "improved"):
                assert (told.tag, told.text) == ("system-out", f"{row.verdict}: {row.change}")
            else:
                assert (told.get("type"), told.get("message")) == (row.verdict, row.change)
                assert told.text == row.reason
        (last,) = cases[-1]
        if result.outcome == "pass":
            assert last.text == f"unchanged: {result.answer}"
        else:
            kind = "regressed" if result.outcome == "regression" else result.outcome
            assert (last.get("type"), last.get("message")) == (kind, result.answer)
            assert last.text == " ".join(result.reasons)


def test_badges_say_the_outcome_the_worst_change_and_the_origin() -> None:
    for result in _results():
        words, _, colour, drawn_colour, _ = OUTCOMES[result.outcome]
        change = "" if result.worst_change is None else f" {100 * result.worst_change:+.1f}%"
        message = f"{words}{change}{' (synthetic)' if result.origin else ''}"
        told = json.loads(badge(result, ".json"))
        expected = {"schemaVersion": 1, "label": "performance", "message": message, "color": colour}
        assert told == expected
        drawn = ET.fromstring(badge(result, ".svg"))
        assert drawn.get("aria-label") == f"performance: {message}"
        space = "{http://www.w3.org/2000/svg}"
        left, right = drawn.findall(f"{space}rect")
        assert right.get("fill") == drawn_colour
        widths = [int(one.get("width") or 0) for one in (left, right)]
        assert widths == [7 * len("performance") + 12, 7 * len(message) + 12]
        assert int(drawn.get("width") or 0) == sum(widths)
        assert int(right.get("x") or 0) == widths[0]
        texts = drawn.findall(f".//{space}text")
        assert [text.text for text in texts] == ["performance", message]
        begins = [0, widths[0]]
        for text, begin, width in zip(texts, begins, widths, strict=True):
            assert int(text.get("x") or 0) == begin + 6
            assert int(text.get("textLength") or 0) == width - 12
        with pytest.raises(UsageError, match=r"not '\.png'"):
            badge(result, ".png")


def _unescaped(text: str, *, is_property: bool = False) -> str:
    """As GitHub's runner reads a value (actions/toolkit, packages/core/src/command.ts)."""
    pairs = {"%3A": ":", "%2C": ","} if is_property else {}
    for escaped, sign in {**pairs, "%0D": "\r", "%0A": "\n", "%25": "%"}.items():
        text = text.replace(escaped, sign)
    return text


def test_annotations_name_the_answer_and_at_most_nine_items() -> None:
    for result in _results():
        _, kind, _, _, wanted = OUTCOMES[result.outcome]
        lines = list(github_annotations(result))
        read = []
        for line in lines:
            match = re.fullmatch(r"::(\w+) title=([^:,]*)::(.*)", line)
            assert match is not None, line
            title, message = _unescaped(match[2], is_property=True), _unescaped(match[3])
            read.append((match[1], title, message))
        doubt = " [synthetic data, not a measurement]" if result.origin else ""
        first = f"{result.answer}{doubt}. {' '.join(result.reasons[:3])}"
        named = [row for row in result.rows if row.decides and row.verdict == wanted][:9]
        items = [(kind, row.name, f"{row.change}: {row.reason}") for row in named]
        assert read == [(kind, "rpl compare", first), *items]


def test_the_summary_is_a_table_of_which_no_name_is_markup() -> None:
    for result in _results():
        lines = github_summary(result).splitlines()
        assert html.unescape(lines[0]) == f"### rpl compare: {result.answer}"
        assert any("SYNTHETIC" in line for line in lines) is (result.origin is not None)
        listed = [line for line in lines if line.startswith("- ")]
        assert [html.unescape(line[2:]) for line in listed] == list(result.reasons[:8])
        head = lines.index("| item | BASE | NEW | change | verdict |")
        rows = [line for line in lines[head + 2 :] if line.startswith("| ")]
        for row, line in zip(result.rows[:60], rows, strict=True):
            cells = [html.unescape(cell.strip()) for cell in line.strip("|").split("|")]
            verdict = row.verdict if row.decides else f"({row.verdict})"
            assert cells == [f"<code>{row.name}</code>", row.base, row.new, row.change, verdict]
            plain = re.sub(r"&#?\w+;|</?code>", "", line)
            assert not set(plain) & set("<>`*_[]~\\@#"), line
        more = len(result.rows) - 60
        assert (f"{more} more in the document." in lines) is (more > 0)


def test_where_files_and_summaries_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _results()[0]
    xml, svg = tmp_path / "a.xml", tmp_path / "b.svg"
    assert files_of(result, None, None) == []
    assert files_of(result, xml, svg) == [(xml, junit(result)), (svg, badge(result, ".svg"))]
    assert files_of(result, None, svg) == [(svg, badge(result, ".svg"))]
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert append_summary(result) is None
    place = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
    assert append_summary(result) == append_summary(result) == place
    assert place.read_text(encoding="utf-8") == 2 * github_summary(result)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(UsageError, match="can't be written: Is a directory"):
        append_summary(result)
