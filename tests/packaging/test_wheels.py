"""What the distributions contain, without installing them."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email.parser import Parser

import pytest

pytestmark = pytest.mark.long

#: Files that no import statement names and that are therefore easily forgotten.
NEEDED = {
    "rpl_core": (
        "rpl_core/py.typed",
        "plugins/rpl_analysis/src/rpl_analysis/bottleneck/rules.toml",
        "plugins/rpl_report/src/rpl_report/html/assets/report.js",
        "plugins/rpl_report/src/rpl_report/html/assets/LICENSE.uPlot.txt",
        "plugins/rpl_report/src/rpl_report/html/templates/page.html.j2",
        "plugins/rpl_testkit/src/rpl_testkit/rocprofv3_standin/launch.py",
        "plugins/rpl_testkit/src/rpl_testkit/rocprofv3_standin/__main__.py",
        "plugins/rpl_testkit/src/rpl_testkit/rocprofv3_standin/ready_client.c",
        "plugins/rpl_testkit/src/rpl_testkit/rocprofv3_standin/ready_server.py",
        "plugins/rpl_testkit/src/rpl_testkit/hipcc_standin/launch.py",
        "plugins/rpl_testkit/src/rpl_testkit/hipcc_standin/include/hip/hip_runtime.h",
        "plugins/rpl_testkit/src/rpl_testkit/hipcc_standin/include/rpl_hip/host_kernels.h",
        "plugins/rpl_testkit/src/rpl_testkit/pytest_plugin.py",
    ),
    "rpl_rocprofv3": ("rpl_rocprofv3/py.typed", "rpl_rocprofv3/plugin.py"),
    "rpl_gfx942": ("rpl_gfx942/py.typed", "rpl_gfx942/plugin.py"),
    "rpl_att": ("rpl_att/py.typed", "rpl_att/plugin.py"),
    "rpl_llm_unroll": ("rpl_llm_unroll/py.typed", "rpl_llm_unroll/plugin.py"),
    "rocm_perf_lab": (),
}


@pytest.fixture
def wheel(wheelhouse):
    """``wheel("rpl_core")``: the opened archive."""

    def open_wheel(name):
        (path,) = wheelhouse.glob(f"{name}-*.whl")
        return zipfile.ZipFile(path)

    return open_wheel


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_wheel_holds_what_it_needs_and_no_tests(wheel, name):
    names = wheel(name).namelist()
    assert set(NEEDED[name]) <= set(names)
    assert not [entry for entry in names if entry.startswith(("tests/", "docs/", "benchmarks/"))]
    assert not [entry for entry in names if entry.endswith((".pyc", ".db", ".tmp"))]


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_wheel_tells_licence_and_python_version(wheel, name):
    archive = wheel(name)
    (path,) = (entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(path).decode())
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["Summary"]


def test_three_commands_are_one_program(wheel):
    archive = wheel("rpl_core")
    (path,) = (entry for entry in archive.namelist() if entry.endswith("entry_points.txt"))
    text = archive.read(path).decode()
    for command in ("rpl", "rocm-perf", "rocm-perf-lab"):
        assert f"\n{command} = rpl_core.cli:main\n" in text


def test_metapackage_holds_nothing_and_requires_everything(wheel, wheelhouse):
    archive = wheel("rocm_perf_lab")
    assert all(".dist-info/" in entry for entry in archive.namelist())
    (path,) = (entry for entry in archive.namelist() if entry.endswith("METADATA"))
    required = Parser().parsestr(archive.read(path).decode()).get_all("Requires-Dist")
    names = {re.match(r"[\w-]+", text)[0].replace("-", "_") for text in required}
    assert names == {path.name.partition("-")[0] for path in wheelhouse.glob("*.whl")} - {"rocm_perf_lab"}


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_sdist_is_complete_and_gives_the_same_wheel(sdists, wheel, name, tmp_path, build_wheel):
    (archive,) = sdists.glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, filter="data")
    (project,) = (entry for entry in tmp_path.iterdir() if entry.is_dir())
    assert (project / "README.md").is_file()
    (rebuilt,) = build_wheel(project).glob("*.whl")
    records = [entry for entry in wheel(name).namelist() if not entry.endswith("/RECORD")]
    with zipfile.ZipFile(rebuilt) as again:
        assert sorted(again.namelist()) == sorted(wheel(name).namelist())
        assert all(again.read(entry) == wheel(name).read(entry) for entry in records)
