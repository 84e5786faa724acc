"""Names from recordings are text on the page, whatever they try to be."""

from __future__ import annotations

import json

import pytest
from markupsafe import escape

from rpl_analysis.text import shown_names
from rpl_core.text import readable
from rpl_report.html.figures import kernel_names
from rpl_report.html.timeline_view import script_json


def _shape(root):
    """Tags and attribute names in order: what markup a name could add would show here."""
    return [(e.tag, tuple(sorted(e.attributes))) for e in root.all()]


def test_hostile_names_add_no_markup(hostile_names, hostile_report, report_of, parsed):
    hostile = parsed(hostile_report)
    # The same recording with harmless names of their own. Names are sorted in documents, so keep the order.
    order = sorted(range(len(hostile_names)), key=lambda i: hostile_names[i])
    rank = {index: place for place, index in enumerate(order)}
    plain = [f"kernel_{rank[i]:02d}" for i in range(len(hostile_names))]
    harmless = report_of([(name, 1000 * i, 1000 * i + 900) for i, name in enumerate(plain, 1)])
    assert _shape(hostile) == _shape(parsed(harmless))


def test_hostile_names_are_readable_in_full(hostile_names, hostile_report, parsed):
    shown = {code.text for code in parsed(hostile_report).by_id("evidence").find_all("code")}
    assert {readable(name) for name in hostile_names if name} <= shown


def test_no_control_or_direction_characters_reach_the_page(hostile_report):
    text = hostile_report.read_text(encoding="utf-8")
    assert not {c for c in text if ord(c) < 32 and c != "\n"}
    assert not set(text) & {"\u202e", "\u2028", "\u2066", "\x7f", "\x9b"}


def test_data_for_the_script_is_json_that_cannot_end_its_element(hostile_report, parsed):
    data = parsed(hostile_report).by_id("timeline-data").text
    assert not set(data) & set("<>&")
    names = [symbol["name"] for symbol in json.loads(data)["symbols"]]
    assert "<script>window.hacked=1</script>" in names


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "\ud800", "&lt;"])
def test_embedded_json_gives_back_its_value(text):
    encoded = script_json({"name": text})
    assert not set(encoded) & set("<>&\u2028")
    assert json.loads(str(encoded)) == {"name": text}


def test_a_two_kilobyte_name_is_short_in_tables_and_full_in_its_details(hostile_report, parsed):
    root = parsed(hostile_report)
    name = "long_" + "n" * 2043
    row = next(r for r in root.by_id("kernel-table").find_all("tr") if "long_" in r.text)
    assert len(row.find_all("a")[0].text) <= 64
    assert any(code.text == name for code in root.by_id("evidence").find_all("code"))


def test_many_long_names_stay_within_the_budget():
    recorded = [f"{i:05d}_" + "<" * 5000 for i in range(400)]
    names = kernel_names(recorded, shown_names(recorded))
    assert len(names.ids) == 200
    assert max(map(len, names.full.values())) <= 4096
    assert sum(len(escape(name)) for name in names.full.values()) <= 600_000 + 200 * 5 * 64
