"""What the distributions contain, without installing them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from .conftest import PACKAGES, build

pytestmark = pytest.mark.long
ROOT = PACKAGES["rpl_core"].parent
#: Where the wheel of the core holds the documentation.
PAGES = "rpl_core/pages/"


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
    # A package may hold a folder of the checkout by a link; the wheel holds its files.
    walked = os.walk(folder, followlinks=True)
    files = [Path(place, file) for place, _, names in walked for file in names if not file.endswith(".pyc")]
    held = {entry for entry in wheel(name).namelist() if ".dist-info/" not in entry and PAGES not in entry}
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


def test_metapackage_requires_everything_but_the_test_kit_and_what_agents_need(wheel):
    names = _required(wheel("rocm_perf_lab"))
    assert names == PACKAGES.keys() - {"rocm_perf_lab", "rpl_testkit", "rpl_mcp"}


@pytest.mark.parametrize("name", PACKAGES)
def test_nothing_requires_the_test_kit(wheel, name):
    assert "rpl_testkit" not in _required(wheel(name))


def _required(archive):
    (path,) = (entry for entry in archive.namelist() if entry.endswith("METADATA"))
    required = Parser().parsestr(archive.read(path).decode()).get_all("Requires-Dist") or []
    names = {re.match(r"[\w-]+", text)[0].replace("-", "_") for text in required}
    return {name for name in names if name.startswith("rpl_")}


def test_the_core_brings_every_page(wheel):
    archive = wheel("rpl_core")
    for page in (ROOT / "docs").rglob("*.md"):
        assert archive.read(f"{PAGES}{page.relative_to(ROOT).as_posix()}") == page.read_bytes()
    for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY"):
        assert archive.read(f"{PAGES}{name}.md") == (ROOT / f"{name}.md").read_bytes()


def test_links_of_the_cores_readme_work_on_an_index_page(wheel):
    archive = wheel("rpl_core")
    (path,) = (entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
    text = archive.read(path).decode()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    source = re.search(r"^Project-URL: Source, (\S+)$", text, re.MULTILINE)[1]
    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    for link in links:
        if link.startswith(source):
            assert (ROOT / link.removeprefix(f"{source}/").partition("#")[0]).exists(), link


def test_an_index_would_take_everything(wheelhouse, sdists):
    files = [str(path) for folder in (wheelhouse, sdists) for path in sorted(folder.iterdir())]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == len(files)
    # The wheelhouse holds that of rpl-native as well, whose source distribution takes CMake and minutes.
    assert {Path(file).name.partition("-")[0] for file in files} == PACKAGES.keys() | {"rpl_native"}
    assert len(files) == 2 * len(PACKAGES) + 1


@pytest.mark.parametrize("name", PACKAGES)
def test_sdist_is_complete_and_gives_the_same_bytes_again(sdists, wheelhouse, name, tmp_path):
    """The wheel from the source distribution is that of the checkout."""
    (archive,) = sdists.glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path / "unpacked", filter="data")
    (project,) = (tmp_path / "unpacked").iterdir()
    assert (project / "README.md").is_file()
    build("wheel", project, tmp_path / "wheel")
    (rebuilt,) = (tmp_path / "wheel").iterdir()
    assert rebuilt.read_bytes() == (wheelhouse / rebuilt.name).read_bytes()
    build("sdist", project, tmp_path / "again")
    (again,) = (tmp_path / "again").iterdir()
    with tarfile.open(archive) as first, tarfile.open(again) as second:
        # PKG-INFO of the unpacked folder is made anew: it stands there twice, elsewhere in the order.
        assert set(second.getnames()) == set(first.getnames())


def test_the_same_sources_give_the_same_archives(sdists, tmp_path):
    for name in ("rpl_core", "rpl_analysis", "rocm_perf_lab"):
        project = ROOT if name == "rpl_core" else PACKAGES[name].parents[1]
        build("sdist", project, tmp_path)
        (archive,) = tmp_path.glob(f"{name}-*.tar.gz")
        assert archive.read_bytes() == (sdists / archive.name).read_bytes()
