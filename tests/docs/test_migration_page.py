"""The page for plugins of an older ``RPL_API`` names imports that are gone, and where their names are now."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugins" / "migration.md"
ROWS = re.findall(r"^\| `(rpl_[\w.]+)` \| `(rpl_[\w.]+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("before", "now", "names"), ROWS, ids=[f"{row[0]}-{row[1]}" for row in ROWS])
def test_each_row_is_true(before, now, names):
    module = importlib.import_module(now)
    own = [name for name in re.findall(r"`(\w+)`", names) if hasattr(module, name)]
    assert own == re.findall(r"`(\w+)`", names)
    try:
        old = importlib.import_module(before)
    except ModuleNotFoundError:
        return
    # A module may still be there, and import what it has no longer itself.
    assert not [name for name in own if getattr(getattr(old, name, None), "__module__", None) == before]


def test_the_refusal_of_an_older_plugin_names_the_page(rpl_cli):
    shown = rpl_cli("docs", "plugins/migration").assert_ok().stdout
    assert "From RPL_API 1 to 2" in shown
