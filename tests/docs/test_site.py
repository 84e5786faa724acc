"""The pages make a site, and a dead link or a page that nobody reaches is an error."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.long
def test_the_site_is_built_without_a_warning(documentation, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        capture_output=True,
        text=True,
        check=False,
        cwd=documentation.root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "USER_GUIDE.html", "plugins/kinds/readers.html", "project/CHANGELOG.html"} <= pages
    fetched = [
        page for page in pages if "https://fonts." in (tmp_path / "site" / page).read_text(encoding="utf-8")
    ]
    assert fetched == []
