"""What the distributions contain, without installing them."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email.parser import Parser

import pytest

from .conftest import PACKAGES

pytestmark = pytest.mark.long


@pytest.fixture
def wheel(wheelhouse):
    """``wheel("rpl_core")``: the opened archive."""

    def open_wheel(name):
        (path,) = wheelhouse.glob(f"{name}-*.whl")
        return zipfile.ZipFile(path)

    return open_wheel


@pytest.mark.parametrize("name", PACKAGES)
def test_wheel_holds_every_file_of_its_package_and_nothing_else(wheel, name):
    folder = PACKAGES[name]
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    held = {entry for entry in wheel(name).namelist() if ".dist-info/" not in entry}
    assert held == {f"{name}/{path.relative_to(folder).as_posix()}" for path in files}
    assert f"{name}/py.typed" in held


@pytest.mark.parametrize("name", PACKAGES)
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


def test_metapackage_requires_everything_but_the_test_kit(wheel):
    names = _required(wheel("rocm_perf_lab"))
    assert names == PACKAGES.keys() - {"rocm_perf_lab", "rpl_testkit"}


@pytest.mark.parametrize("name", PACKAGES)
def test_nothing_requires_the_test_kit(wheel, name):
    assert "rpl_testkit" not in _required(wheel(name))


def _required(archive):
    (path,) = (entry for entry in archive.namelist() if entry.endswith("METADATA"))
    required = Parser().parsestr(archive.read(path).decode()).get_all("Requires-Dist") or []
    names = {re.match(r"[\w-]+", text)[0].replace("-", "_") for text in required}
    return {name for name in names if name.startswith("rpl_")}


@pytest.mark.parametrize("name", PACKAGES)
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
