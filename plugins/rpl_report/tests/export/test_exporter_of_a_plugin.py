"""Export formats from a stranger's plugin, beside those of rpl-report."""

from __future__ import annotations

import pytest

PLUGIN = """
from rpl_core import hookimpl
from rpl_report.interfaces import Exporter, ExportInput

RPL_API = 2

class Count(Exporter):
    name, summary, suffix = "count", "How many dispatches there are.", ".txt"
    def export(self, request):
        return b"%d\\n" % sum(len(trace.dispatches) for trace in request.recording.traces)

class Names(Exporter):
    name, summary, suffix = "names", "The names of the kernels.", ".txt"
    needs = ExportInput.DOCUMENTS
    def export(self, request):
        return "".join(kernel.name + "\\n" for kernel in request.documents["profile"].kernels).encode()

class Wrong(Count):
    name = "wrong"
    def export(self, request):
        return "text"

class Raises(Count):
    name = "raises"
    def export(self, request):
        raise ZeroDivisionError("bad luck")

@hookimpl
def rpl_exporters():
    return (Count(), Names(), Wrong(), Raises())
"""


@pytest.fixture
def export(tmp_path, monkeypatch, rpl_cli):
    (tmp_path / "exporting_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    return lambda *words: rpl_cli("-p", "exporting_plugin", "export", *words)


@pytest.fixture
def recording(rpl_make_rocpd):
    return rpl_make_rocpd([("copy", 1000, 3000), ("scale", 3000, 4000)])


def test_formats_get_the_recording_or_the_documents(export, recording, rpl_cli, tmp_path):
    assert export("--format", "count", recording).assert_ok().stdout == "2\n"
    assert export("--format", "names", recording).assert_ok().stdout == "copy\nscale\n"
    rpl_cli("analyze", recording, "-o", tmp_path / "run").assert_ok()
    assert export("--format", "names", tmp_path / "run").assert_ok().stdout == "copy\nscale\n"


@pytest.mark.parametrize(
    ("name", "problem"),
    [("wrong", "TypeError: bytes were expected"), ("raises", "ZeroDivisionError: bad luck")],
)
def test_a_format_that_fails_is_named(name, problem, export, recording):
    stderr = export("--format", name, recording).assert_exit(70).stderr
    assert f"plugin 'exporting_plugin' failed in the export format '{name}': {problem}" in stderr


def test_help_and_refusals_list_all_formats(export, recording):
    assert "raises|perfetto|csv" in "".join(export("--help").assert_ok().stdout.split())
    assert "'raises', 'perfetto'" in export("--format", "flamegraph", recording).assert_exit(64).stderr
    assert "count" in export(recording).assert_exit(64).stderr
