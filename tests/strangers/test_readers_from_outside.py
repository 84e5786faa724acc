"""A stranger's reader, installed like any other: its notes beside the columns silence nobody."""

from __future__ import annotations

import json

import pytest

PLUGIN = """
from rpl_core import hookimpl

RPL_API = 2


@hookimpl
def rpl_readers():
    from rpl_noted.reader import NotesReader
    return (NotesReader(),)
"""

READER = """
import numpy as np

from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.metric import Origin
from rpl_core.model.trace import Dispatches, LaunchShapes, Trace, TraceRole, TraceSource


class NotesReader(Reader):
    name, summary, priority = "notes", "notes beside a recording", 10

    def claim(self, files):
        return [InputSet("notes", "notes", (f,)) for f in files if f.suffix == ".notes"]

    def read(self, inputs):
        def column(dtype):
            return np.zeros(0, dtype=dtype)

        indices = {n: column(np.int32) for n in ("process", "agent", "kernel", "stream", "queue", "shape")}
        times = ("dispatch_id", "correlation_id", "begin_ns", "end_ns")
        sizes = np.zeros((0, 3), dtype=np.int64)
        return (
            Trace(
                source=TraceSource("notes", "notes", tuple(str(path) for path in inputs.paths)),
                role=TraceRole.THREAD_TRACE,
                origin=Origin.SYNTHETIC,
                processes=(), agents=(), kernels=(),
                dispatches=Dispatches(**indices, **{n: column(np.int64) for n in times}),
                shapes=LaunchShapes(sizes, sizes, column(np.int64), column(np.int64)),
                slows_neighbours="slow" in inputs.paths[0].read_text(),
                extras={"notes": ("something else",)},
            ),
        )
"""


@pytest.fixture
def noted(site, rpl_make_rocpd, tmp_path):
    """``noted(text)``: the analysis of a recording that lies beside a file of the stranger's reader."""
    modules = {"plugin": PLUGIN, "reader": READER}
    site.install("rpl-noted", modules, {"rpl.plugins": {"noted": "rpl_noted.plugin"}})
    recording = rpl_make_rocpd([("kernel", 0, 1000)])
    folder = tmp_path / "run"
    folder.mkdir()
    recording.rename(folder / "out_results.db")

    def analysed(text):
        (folder / "beside.notes").write_text(text)
        site.rpl("analyze", folder, "-o", tmp_path / "out").assert_ok()
        return json.loads((tmp_path / "out" / "profile.json").read_text())

    return analysed


def test_extras_of_a_reader_silence_no_timing_run(noted):
    profile = noted("harmless")
    assert [kernel["name"] for kernel in profile["kernels"]] == ["kernel"]
    assert "ingest.times_not_used" not in {d["code"] for d in profile["diagnostics"]}


def test_a_reader_that_says_so_silences_the_timing_run_beside_it(noted):
    profile = noted("slow")
    assert profile["kernels"] == []
    assert "ingest.times_not_used" in {d["code"] for d in profile["diagnostics"]}
