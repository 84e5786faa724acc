"""Databases are opened in one place: what is opened elsewhere may delete, hang or hoard."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPENER = ROOT / "plugins/rpl_rocprofv3/src/rpl_rocprofv3/database.py"
#: The example of another vendor does without packages for AMD, so it opens its files itself, as carefully.
EXAMPLE = ROOT / "examples/rpl-sm90/src/rpl_sm90/export.py"
#: Makes files of its own and reads none.
WRITER = ROOT / "plugins/rpl_emu/src/rpl_emu/rocpd_file.py"
#: Modules that open databases.
DRIVERS = {"sqlite3", "apsw", "aiosqlite", "sqlalchemy", "duckdb", "_sqlite3"}


def _uses(path):
    """Whether a module imports a driver for more than the names of types."""
    text = path.read_text()
    if not any(driver in text for driver in DRIVERS):
        return False
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]  # import_module("sqlite3")
        else:
            continue
        if any(name.partition(".")[0] in DRIVERS for name in names):
            return True
    return False


def test_one_module_opens_databases():
    sources = [ROOT / "rpl_core", ROOT / "metapackage/src", ROOT / "examples", ROOT / "templates"]
    sources += [path / "src" for path in (ROOT / "plugins").iterdir() if path.name != "rpl_testkit"]
    files = [path for source in sources for path in source.rglob("*.py") if "{{" not in str(path)]
    found = {path for path in files if "tests" not in path.relative_to(ROOT).parts and _uses(path)}
    assert found == {OPENER, EXAMPLE, WRITER}
