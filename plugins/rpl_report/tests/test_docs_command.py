"""``rpl docs`` shows the pages that were installed, and every page that a message names is one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rpl_report.cli.report import installed_pages

ROOT = Path(__file__).resolve().parents[3]


def test_every_page_is_listed_with_its_title(rpl_cli):
    rows = dict(line.split(None, 1) for line in rpl_cli("docs").assert_ok().stdout.splitlines()[1:])
    assert len(rows) == len(list((ROOT / "docs").rglob("*.md"))) + 4
    assert rows["USER_GUIDE"] == "User guide"
    assert {"README", "SECURITY", "plugins", "reference/devices", "troubleshooting"} <= rows.keys()


@pytest.mark.parametrize(
    "spelt", ["plugins/tutorial", "docs/plugins/tutorial.md", "tutorial", "Tutorial#installing-it"]
)
def test_a_page_is_found_by_any_of_its_names(rpl_cli, spelt):
    shown = rpl_cli("docs", spelt).assert_ok().stdout
    assert shown.strip() == (ROOT / "docs/plugins/tutorial.md").read_text(encoding="utf-8").strip()


def test_the_place_of_a_page(rpl_cli):
    shown = rpl_cli("docs", "user-guide", "--path").assert_ok().stdout
    assert Path(shown.strip()).read_text(encoding="utf-8").startswith("# User guide")


def test_a_page_that_is_not_there(rpl_cli):
    assert "`rpl docs` lists the pages" in rpl_cli("docs", "usr-guide").assert_exit(64).stderr


def test_pages_that_messages_and_guides_name_are_installed(rpl_cli):
    """Users have the wheels, not the repository."""
    sources = [
        *ROOT.glob("rpl_core/**/*.py"),
        *ROOT.glob("plugins/*/src/**/*.py"),
        *ROOT.glob("metapackage/src/**/*.py"),
    ]
    pages = [
        *installed_pages().values(),
        *ROOT.glob("plugins/*/README.md"),
        ROOT / "metapackage" / "README.md",
    ]
    named = set()
    for file in (*sources, *pages):
        named |= set(re.findall(r"`rpl docs ([\w/-]+)`", file.read_text(encoding="utf-8")))
    named -= {"PAGE"}
    assert len(named) > 10
    for name in named:
        rpl_cli("docs", name, "--path").assert_ok()
