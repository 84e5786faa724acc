"""Damaged recordings of every format: documents or one clear refusal, never a crash or a hunt for memory."""

from __future__ import annotations

import gzip
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .budget import fuzzed, fuzzed_less
from .mutations import byte_edits, cell_edits, edit_bytes, edit_database, edit_json, edit_table, schema_edits

RECORDINGS = ("trace", "counters")
CSV = {"trace": "trace_kernel_trace.csv", "counters": "counters_counter_collection.csv"}


@pytest.mark.parametrize("recording", RECORDINGS)
def test_rocpd_with_hostile_cells(recording, corpus, fresh, digest):
    source = corpus / f"{recording}_results.db"

    @fuzzed_less
    @given(schema_edits, cell_edits)
    def run(schema, cells):
        path = fresh(source.name)
        shutil.copyfile(source, path)
        edit_database(path, schema, cells)
        digest(path)

    run()


def test_rocpd_with_damaged_bytes(corpus, fresh, digest):
    source = (corpus / "trace_results.db").read_bytes()

    @fuzzed
    @given(byte_edits)
    def run(edits):
        path = fresh("trace_results.db")
        path.write_bytes(edit_bytes(source, edits))
        digest(path)

    run()


@pytest.mark.parametrize("recording", RECORDINGS)
def test_csv_with_hostile_cells(recording, corpus, fresh, digest):
    source = (corpus / CSV[recording]).read_text()
    agents = corpus / f"{recording}_agent_info.csv"

    @fuzzed
    @given(cell_edits, byte_edits | st.just([]))
    def run(cells, edits):
        path = fresh(CSV[recording])
        text = edit_table(source, cells).encode("utf-8", "surrogatepass")
        path.write_bytes(edit_bytes(text, edits))
        shutil.copyfile(agents, path.with_name(agents.name))
        digest(path.parent)

    run()


@pytest.mark.parametrize("recording", RECORDINGS)
def test_json_with_hostile_values(recording, corpus, fresh, digest):
    source = (corpus / f"{recording}_results.json").read_text()

    @fuzzed_less
    @given(cell_edits)
    def run(values):
        path = fresh(f"{recording}_results.json")
        path.write_text(edit_json(source, values))
        digest(path)

    run()


def test_json_with_damaged_bytes(corpus, fresh, digest):
    source = (corpus / "trace_results.json").read_bytes()

    @fuzzed
    @given(byte_edits)
    def run(edits):
        path = fresh("trace_results.json")
        path.write_bytes(edit_bytes(source, edits))
        digest(path)

    run()


@pytest.mark.parametrize("name", ["trace_results.json", "trace_kernel_trace.csv", "trace_results.db"])
def test_gzip_with_damaged_bytes(name, corpus, fresh, digest):
    source = gzip.compress((corpus / name).read_bytes(), mtime=0)

    @fuzzed
    @given(byte_edits)
    def run(edits):
        path = fresh(f"{name}.gz")
        path.write_bytes(edit_bytes(source, edits))
        digest(path)

    run()


def test_files_of_any_content_under_any_name(fresh, digest):
    names = st.sampled_from(
        ("a.db", "a.csv", "a_kernel_trace.csv", "results.json", "a.json.gz", "a.rpd", "a")
    )
    starts = st.sampled_from(
        (b"", b"SQLite format 3\x00", b'{"rocprofiler-sdk-tool": [', b"\x1f\x8b\x08", b"Kind,")
    )

    @fuzzed
    @given(names, starts, st.binary(max_size=400))
    def run(name, start, content):
        path = fresh(name)
        path.write_bytes(start + content)
        digest(path)

    run()
