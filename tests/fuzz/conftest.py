"""Good recordings to damage, and what counts as a fault.

Every test runs under a memory limit, so that an allocation bomb is a failure.
"""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from rpl_core.errors import PluginError, RplError
from rpl_core.pipeline import AnalysisRequest, analyse_paths
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host
from rpl_testkit.rocprofv3_standin import install_standin

from .refusals import check_refusal

#: Address space that reading one small hostile file may add (chosen: numpy and its threads take most of it).
_MEMORY_BYTES = 3 << 30


def pytest_collection_modifyitems(items):
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker("fuzz")


_PLUGINS = "rpl-core,rpl-amdgpu,rpl-analysis,rpl-codeobject,rpl-report,rpl-rocprofv3,rpl-gfx942"
#: Diagnostics that hide a crash in a reader or an analyzer.
_FAULTS = ("plugin.", "analyzer.", "document.", "ingest.reader_failed")


@pytest.fixture(autouse=True)
def memory_limit():
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY_BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """``corpus / "trace_results.db"``, ...: what the stand-in of the profiler writes in each format."""
    folder = tmp_path_factory.mktemp("corpus")
    program = install_standin(folder)
    trace = ("--kernel-trace", "--hip-runtime-trace", "--memory-copy-trace")
    counters = ("--pmc", "SQ_WAVES", "TCC_HIT_sum")
    for name, kind in (("trace", trace), ("counters", counters)):
        for form in ("rocpd", "json", "csv"):
            command = [
                str(program),
                *kind,
                "--output-format",
                form,
                "-d",
                str(folder),
                "-o",
                name,
                "--",
                "true",
            ]
            subprocess.run(
                command, check=True, capture_output=True, env={**os.environ, "RPL_STANDIN_SEED": "1"}
            )
    return folder


@pytest.fixture
def fresh(tmp_path):
    """``fresh("name")``: the path of a file in a folder of its own, for every example anew."""
    numbers = itertools.count()

    def make(name):
        for old in tmp_path.iterdir():
            shutil.rmtree(old)
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return folder / name

    return make


@pytest.fixture(scope="session")
def digest():
    """``digest(path)``: analyse it; documents or one clear refusal, anything else is a fault of rpl."""
    return _digest(_PLUGINS)


@pytest.fixture(scope="session")
def digest_traces():
    """The same with the plugin of thread traces."""
    return _digest(f"{_PLUGINS},rpl-att")


def _digest(plugins):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RPL_LOAD_PLUGINS", plugins)
        host = create_host(PluginSelection.from_environment(), config={})

    def run(*paths):
        try:
            documents, _ = analyse_paths(paths, AnalysisRequest(device="gfx942"), host)
        except PluginError as error:
            raise AssertionError(f"{type(error.__cause__).__name__} in a plugin: {error.fact}") from error
        except RplError as error:
            check_refusal(error)
            return None
        found = documents.model("profile").diagnostics
        crashed = [d.fact for d in found if d.code.startswith(_FAULTS)]
        assert not crashed, crashed
        assert set(documents.names) == {"profile", "roofline", "dag", "analysis"}
        for name in documents.names:
            documents.json(name)
        return documents

    run.contributions = host.catalog.documents().contributions
    return run
