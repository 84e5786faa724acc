"""Damaged recordings of every format: documents or one clear refusal, never a crash or a hunt for memory."""

from __future__ import annotations

import gzip
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .budget import fuzzed, fuzzed_less
from .counted import calls_of
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


def test_companions_of_a_database(corpus, fresh, digest):
    """What lies beside a database is read with it, and nothing there is changed."""
    source = (corpus / "trace_results.db").read_bytes()
    magic = bytes.fromhex("d9d505f920a163d7")
    log = bytes.fromhex("377f0682002de218") + (4096).to_bytes(4, "big")
    head = magic + bytes(12) + (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")
    starts = st.sampled_from((b"", magic, head.ljust(512, b"\0"), log, source[:4096]))
    ends = st.sampled_from((b"", magic, b"precious" + (8).to_bytes(4, "big") + bytes(4) + magic))
    names = st.sampled_from(("-journal", "-wal", "-shm"))
    contents = st.builds(lambda *parts: b"".join(parts), starts, st.binary(max_size=9000), ends)

    @fuzzed
    @given(st.dictionaries(names, contents, min_size=1), byte_edits | st.just([]))
    def run(companions, edits):
        path = fresh("trace_results.db")
        path.write_bytes(edit_bytes(source, edits))
        path.with_name("precious").write_bytes(b"of the user")
        for name, content in companions.items():
            path.with_name(path.name + name).write_bytes(content)
        before = {file: file.read_bytes() for file in path.parent.iterdir()}
        digest(path)
        assert {file: file.read_bytes() for file in path.parent.iterdir()} == before

    run()


@pytest.mark.parametrize("name", ["trace_results.json", "trace_kernel_trace.csv", "trace_results.db"])
def test_work_follows_the_size(name, corpus, fresh, digest):
    source = (corpus / name).read_bytes()
    whole = calls_of(lambda: digest(_written(fresh(name), source)))

    @fuzzed_less
    @given(byte_edits)
    def run(edits):
        damaged = edit_bytes(source, edits)
        assert calls_of(lambda: digest(_written(fresh(name), damaged))) < 3 * whole

    run()


def _written(path, content):
    path.write_bytes(content)
    return path
