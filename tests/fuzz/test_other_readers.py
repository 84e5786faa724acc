"""Damaged RPD files, workload folders and thread traces: documents or one clear refusal."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .budget import fuzzed, fuzzed_less
from .mutations import byte_edits, cell_edits, edit_bytes, edit_database, edit_json, edit_table, schema_edits
from .small_recordings import thread_trace_tables, workload_tables, write_rpd

WORKLOAD = workload_tables()
TRACE = thread_trace_tables()
FOLDER = "ui_output_agent_7_dispatch_4"


@pytest.fixture(scope="module")
def rpd(tmp_path_factory):
    path = tmp_path_factory.mktemp("rpd") / "trace.rpd"
    write_rpd(path)
    return path


def _write(folder, tables):
    folder.mkdir(exist_ok=True)
    for name, content in tables.items():
        (folder / name).write_bytes(
            content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        )
    return folder


def test_the_sound_recordings_give_what_is_in_them(rpd, fresh, digest, digest_traces):
    assert digest(rpd).model("profile").launches == 6
    assert digest(rpd).model("dag").breakdown.copy_ns > 0
    workload = digest(_write(fresh("workload"), WORKLOAD))
    assert workload.model("profile").launches == 4
    assert workload.model("roofline").status == "available"
    traced = digest_traces(_write(fresh(FOLDER), TRACE)).model("profile")
    (part,) = traced.untimed_thread_traces
    assert (part["status"], part["waves"]) == ("available", 2)


def test_rpd_with_hostile_cells(rpd, fresh, digest):
    @fuzzed_less
    @given(schema_edits, cell_edits)
    def run(schema, cells):
        path = fresh("trace.rpd")
        shutil.copyfile(rpd, path)
        edit_database(path, schema, cells)
        digest(path)

    run()


def test_rpd_with_damaged_bytes(rpd, fresh, digest):
    source = rpd.read_bytes()

    @fuzzed
    @given(byte_edits)
    def run(edits):
        path = fresh("trace.rpd")
        path.write_bytes(edit_bytes(source, edits))
        digest(path)

    run()


def test_workload_folders_with_hostile_tables(fresh, digest):
    @fuzzed_less
    @given(st.sampled_from(sorted(WORKLOAD)), cell_edits, byte_edits | st.just([]), st.booleans())
    def run(victim, cells, edits, alone):
        text = edit_table(WORKLOAD[victim], cells).encode("utf-8", "surrogatepass")
        tables = {victim: edit_bytes(text, edits)}
        digest(_write(fresh("workload"), tables if alone else {**WORKLOAD, **tables}))

    run()


def test_thread_traces_with_hostile_tables(fresh, digest_traces):
    @fuzzed_less
    @given(st.sampled_from(sorted(TRACE)), cell_edits, byte_edits | st.just([]), st.booleans())
    def run(victim, values, edits, missing):
        damaged = edit_bytes(edit_json(TRACE[victim], values).encode("utf-8", "surrogatepass"), edits)
        tables = {**TRACE, victim: damaged}
        if missing:
            del tables[sorted(TRACE)[len(values) % len(TRACE)]]
        digest_traces(_write(fresh(FOLDER), tables))

    run()
