"""`rpl --version` and `rpl --help` answer at once: nothing heavy is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from rpl_core.process_start import import_numpy_alone

HEAVY = ("attr", "networkx", "numpy", "pluggy", "pydantic", "rich", "sqlite3", "stevedore")
BARE = "import json, sys; print(*sys.modules)"
LIST_MODULES = """
import json, sys
from rpl_core.cli import main
sys.argv = ["rpl", *sys.argv[1:]]
try:
    code = main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(*words):
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [("--version",), ("-V",), ("--help",), ("-h",), ()])
def test_nothing_heavy_is_imported(words):
    assert sorted(imported_by(*words) & set(HEAVY)) == []


def test_version_does_not_even_import_click():
    assert "click" not in imported_by("--version")


def test_help_imports_no_command_and_no_plugin():
    modules = imported_by("--help")
    assert not {name for name in modules if name.startswith(("rpl_rocprofv3", "rpl_gfx942"))}
    assert "rpl_core.cli.profile" not in modules


@pytest.mark.parametrize("command", ["explain"])
def test_help_of_a_command_loads_no_plugin_host_and_no_numpy(command):
    modules = imported_by(command, "--help")
    assert sorted(modules & {"numpy", "networkx", "pydantic", "rich", "stevedore"}) == []


@pytest.mark.parametrize("command", ["profile", "analyze"])
def test_help_with_options_of_plugins_loads_no_numpy(command):
    """Plugins say which options they add, so their modules are imported; what these import is not."""
    modules = imported_by(command, "--help")
    assert sorted(modules & {"numpy", "networkx", "pydantic", "rich"}) == []


#: What only other recordings, other output or the models of the documents need.
NOT_FOR_TIMES = (
    *("pydantic", "pydantic_core", "pydantic_core.core_schema", "networkx", "rich", "subprocess"),
    *("ijson", "elftools", "numpy.ma"),
    *("rpl_att.contract", "rpl_core.process"),
    *("rpl_analysis.counters.join", "rpl_analysis.roofline.kernel"),
    *("rpl_att.analysis.att_block", "rpl_att.decoded_trace", "rpl_att.reading"),
    *("rpl_pcsampling.contract", "rpl_pcsampling.counting", "rpl_pcsampling.reading"),
    *("msgspec", "rpl_torch.trace_file", "rpl_torch.analysis", "rpl_torch.contracts"),
    *("rpl_rocprofv3.readers.csv", "rpl_rocprofv3.readers.json.trace"),
    *("rpl_rocprofv3.readers.rpd", "rpl_rocprofv3.readers.workload"),
    *("rpl_analysis.execution_graph.dependencies.awaited_work", "rpl_vmreplay.optimizer_checks"),
)


def test_analysing_times_imports_nothing_for_other_recordings(rpl_make_rocpd, tmp_path):
    recording = rpl_make_rocpd([("kernel", 0, 1000), ("kernel", 2000, 2000)])
    for _ in ("anew", "once more"):
        modules = imported_by("analyze", str(recording), "-o", str(tmp_path / "out"))
        assert "rpl_analysis.execution_graph.build" in modules  # it was analysed
        assert sorted(modules & set(NOT_FOR_TIMES)) == []


def test_names_of_modules_that_are_watched_exist():
    assert [name for name in NOT_FOR_TIMES if find_spec(name) is None] == []


PYDANTIC_LATER = """
import sys
from rpl_core.documents import check_draft
shape = {"type": "typed-dict", "fields": {"x": {"type": "typed-dict-field", "schema": {"type": "int"}}}}
print(check_draft(shape, {"x": 3}), "pydantic_core" in sys.modules)
import pydantic, pydantic_core
print(pydantic.create_model("M", x=(int, ...))(x=4).x)
try:
    check_draft(shape, {"x": "three"})
except pydantic.ValidationError as error:
    print(error.error_count())
"""


def test_pydantic_shares_the_engine_that_checked_documents_before_it_was_imported():
    done = subprocess.run([sys.executable, "-c", PYDANTIC_LATER], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["{'x': 3} False", "4", "1"]


ONE_THREAD = """
import os
from rpl_core.process_start import import_numpy_alone
from rpl_core.plugins.host import create_host
from rpl_core.plugins.discovery import PluginSelection
import_numpy_alone()
import numpy
print(len(os.listdir("/proc/self/task")), "OPENBLAS_NUM_THREADS" in os.environ)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_numpy_comes_without_a_pool_of_threads_and_leaves_no_variable_behind(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    done = subprocess.run([sys.executable, "-c", ONE_THREAD], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


def test_a_number_of_threads_that_the_user_chose_stays(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    import_numpy_alone()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"


def test_a_command_looks_for_garbage_rarely_but_does():
    code = (
        "import sys, gc; from rpl_core.cli import main; main(); print(gc.isenabled(), gc.get_threshold()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert done.stderr.split()[-2:] == ["True", "200000"]  # stdout is the result's, which has ended


@pytest.mark.parametrize(("option", "limit"), [("--version", 45), ("--help", 200)])
def test_few_modules_are_imported(option, limit):
    """Beside those of the bare interpreter: 29 and 159 in 2026. Seconds are in benchmarks/cli_startup.py."""
    bare = set(subprocess.check_output([sys.executable, "-c", BARE], text=True).split())
    assert len(imported_by(option) - bare) < limit
