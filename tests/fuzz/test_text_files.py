"""Damaged documents, manifests, rule files and settings: accepted as valid or refused in one clear error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_analysis.bottleneck import parse_rules
from rpl_analysis.documents.load import load_documents
from rpl_analysis.interfaces import Rule
from rpl_core.config import load_configuration
from rpl_core.errors import RplError
from rpl_core.interfaces.section import RenderRequest
from rpl_report.text import TextRenderer
from rpl_testkit.contracts.checks import assert_rule

from .budget import fuzzed
from .mutations import byte_edits, cell_edits, edit_bytes, edit_json
from .refusals import check_refusal

RULES = """
[[rule]]
id = "a"
label = "latency_bound"
priority = 50
corroborates = "b"
explanation = "why"
conditions = [ { quantity = "grid_fill", comparison = "<", threshold = 0.5, source = "chosen" } ]
"""
SETTINGS = 'device = "gfx942"\nruns = 3\nclock-mhz = 2100.0\nstrict = true\n[compare]\nfail-above = "3%"\n'
toml_values = st.sampled_from(
    (
        "1",
        "-1",
        "0.5",
        "nan",
        "inf",
        "true",
        '""',
        '"x"',
        "[]",
        "[1]",
        "{}",
        "1979-05-27",
        "{ a = 1 }",
        "9" * 400,
    )
)
DOCUMENTS = ("profile", "roofline", "dag", "analysis")


@pytest.fixture
def documents(corpus, digest, tmp_path):
    """A folder with the four good documents, and their text by name."""
    digest(corpus / "trace_results.db").write(tmp_path)
    return tmp_path, {name: (tmp_path / f"{name}.json").read_text() for name in DOCUMENTS}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("damage", ["values", "bytes"])
def test_documents(name, damage, documents, digest):
    folder, texts = documents
    path = folder / f"{name}.json"
    values = damage == "values"

    @fuzzed
    @given(cell_edits if values else byte_edits)
    def run(edits):
        good = texts[name]
        path.write_bytes(
            edit_json(good, edits).encode("utf-8", "surrogatepass")
            if values
            else edit_bytes(good.encode(), edits)
        )
        try:
            loaded = load_documents(folder, digest.contributions)
        except RplError as error:
            check_refusal(error)
            return
        shown = TextRenderer().render(RenderRequest(loaded.by_name()))
        assert "\x1b" not in shown
        for document in DOCUMENTS:
            json.loads(loaded.json(document))

    run()


def test_run_manifest(corpus, digest, tmp_path, monkeypatch, rpl_standin_rocprofv3, rpl_cli):
    run_directory = tmp_path / "run"
    rpl_cli("profile", "--runs", "1", "-o", run_directory, "--", "true").assert_ok()
    manifest = run_directory / "run.json"
    good = manifest.read_text()

    @fuzzed
    @given(cell_edits, byte_edits | st.just([]))
    def run(values, edits):
        text = edit_json(good, values).encode("utf-8", "surrogatepass")
        manifest.write_bytes(edit_bytes(text, edits))
        digest(run_directory)

    run()


def _set_value(text, line, value):
    lines = text.splitlines()
    at = line % len(lines)
    lines[at] = f"{lines[at].split('=')[0]} = {value}"
    return "\n".join(lines)


@fuzzed
@given(st.integers(0, 20), toml_values, byte_edits | st.just([]))
def test_rule_file(line, value, edits):
    text = edit_bytes(_set_value(RULES, line, value).encode(), edits).decode("utf-8", "replace")
    try:
        rules = parse_rules(text, "mine.toml")
    except RplError as error:
        check_refusal(error, "mine.toml")
        return
    assert all(isinstance(rule, Rule) for rule in rules)
    for rule in rules:
        assert_rule(rule)


def test_settings_file(tmp_path):
    path = tmp_path / "rpl.toml"

    @fuzzed
    @given(st.integers(0, 20), toml_values, byte_edits | st.just([]))
    def run(line, value, edits):
        path.write_bytes(edit_bytes(_set_value(SETTINGS, line, value).encode(), edits))
        try:
            configuration = load_configuration(str(path))
            configuration.all()
        except RplError as error:
            check_refusal(error)

    run()
