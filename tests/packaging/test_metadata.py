"""What the distributions say of themselves comes from one place, and a new version shows everywhere."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

from rpl_core import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
#: https://keepachangelog.com/en/1.1.0/
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("write_metadata", ROOT / "tools" / "write_metadata.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _project(file):
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]


def test_every_distribution_says_what_the_root_says(tool):
    stale = [file for file, text in tool.written() if file.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make metadata`"


def test_the_version_is_stated_once(tool, rpl_cli):
    assert tool.stated_version() == __version__
    assert "version" in _project(ROOT / "pyproject.toml")["dynamic"]
    assert rpl_cli.process("--version").stdout.split()[-1] == __version__


def test_a_new_version_shows_in_every_distribution(tool, tmp_path):
    """In a copy: its own version, exact pins among the distributions, ranges for plugins of others."""
    for file in (*(path for path, _ in tool.written()), ROOT / "pyproject.toml"):
        copied = tmp_path / file.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)
    (tmp_path / "rpl_core").mkdir()
    (tmp_path / "rpl_core" / "__init__.py").write_text('__version__ = "9.8.7"\n')
    for file, text in tool.written(tmp_path):
        file.write_text(text, encoding="utf-8")
    projects = [tmp_path / p.relative_to(ROOT) for p in tool.projects()]
    own = {"rpl-core"} | {_project(p / "pyproject.toml")["name"] for p in projects}
    assert len(own) == len(projects) + 1 > 19
    for project in projects:
        stated = _project(project / "pyproject.toml")
        assert stated["version"] == "9.8.7"
        extras = stated.get("optional-dependencies", {})
        for required in [*stated["dependencies"], *(r for e in extras.values() for r in e)]:
            name = re.match(r"[\w-]+", required)[0]
            assert name not in own or required.partition(";")[0].endswith("==9.8.7"), required
    assert "version: 9.8.7" in (tmp_path / "CITATION.cff").read_text()
    for folder in ("examples", "templates", "docs"):
        text = "".join(p.read_text() for p in (tmp_path / folder).rglob("*") if p.is_file())
        assert "rpl-core>=9.8,<9.9" in text
        assert "rpl-core>=0." not in text


def test_everything_that_a_reader_of_an_index_looks_for(tool):
    for project in (ROOT, *tool.projects()):
        stated = _project(project / "pyproject.toml")
        assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= stated["urls"].keys()
        assert "Typing :: Typed" in stated["classifiers"]
        assert stated["authors"] == [{"name": "The rpl authors"}]
        assert stated["license"] == "MIT"
        assert (project / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_readmes_on_index_pages_have_no_relative_links(tool):
    """The core's are made absolute while it is built; the others have none."""
    for project in tool.projects():
        found = re.findall(r"\]\((?!https?:|#)[^)]*\)", (project / "README.md").read_text(encoding="utf-8"))
        assert found == [], project


def test_the_changelog_keeps_its_form():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    kinds = []
    for line in lines:
        if line.startswith("## "):
            kinds = []
        elif line.startswith("### "):
            assert line[4:] in KINDS, line
            assert line not in kinds, f"{line} stands twice in one version"
            kinds.append(line)
