"""The files of a capture are described once, in tools/write_capture_format.py; the rest follows it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def described():
    spec = importlib.util.spec_from_file_location(
        "write_capture_format", ROOT / "tools" / "write_capture_format.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_writer_and_reader_are_made_from_the_description(described):
    stale = [path.name for path, text in described.files().items() if path.read_text() != text]
    assert stale == [], "run `make schemas`"


def test_nobody_else_declares_a_document_or_spells_its_files(described):
    """Names of files and keys that are spelled a second time drift apart from the description."""
    generated = set(described.files())
    tool = (ROOT / "native" / "isolate" / "capture").glob("*.*")
    reader = (ROOT / "plugins" / "rpl_vmreplay" / "src").rglob("*.py")
    spelled = [
        (path.name, name)
        for path in (*tool, *reader)
        if path not in generated
        for name in described.NAMES.values()
        if name not in {".bin", "memory", "module_variables"}  # words of other things, too
        if re.search(rf'"{re.escape(name)}"', path.read_text())
    ]
    assert spelled == []


def test_the_reader_holds_what_is_needed_and_read_of_each_record(described):
    from rpl_vmreplay.capture import records

    for record in described.RECORDS:
        model = getattr(records, record.name, None)
        fields = {field.name: field for field in record.fields if field.read}
        assert set(model.model_fields if model else ()) == set(fields), record.name
        assert [
            name for name in fields if model.model_fields[name].is_required() != fields[name].needed
        ] == []


def test_the_manual_tells_every_key(described):
    page = (ROOT / "docs" / "REPLAY.md").read_text()
    words = set(re.findall(r"[`\"](\w+)[`\"]", page))
    told_in_words = {"Dispatch", "HashedFile", "OtherQueue"}
    for record in described.RECORDS:
        if record.name not in told_in_words:
            assert {field.name for field in record.fields} - words == set(), record.name
    for values in described.CHOICES.values():
        assert set(values) - words == set()
