"""A name at the top of a module means one thing: the second of two constants would silently win for both."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """Those that statements define; imports and names of types are ruff's and mypy's to compare."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            # `A, B = 1, 2` and `A = B = 1` define both.
            yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and _stored(n))


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _modules() -> Iterator[tuple[str, list[ast.stmt]]]:
    for top in (ROOT / "rpl_core", *(ROOT / "plugins").glob("*/src"), ROOT / "metapackage" / "src"):
        for path in sorted(top.rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text()).body


def test_no_module_defines_a_name_twice():
    twice = []
    for path, body in _modules():
        seen: set[str] = set()
        for name in _names(body):
            if name in seen:
                twice.append(f"{path}: {name}")
            seen.add(name)
    assert twice == []


def _imported(body: list[ast.stmt]) -> set[str]:
    return {one.asname or one.name for node in body if isinstance(node, ast.ImportFrom) for one in node.names}


def test_what_is_imported_at_run_time_is_not_imported_for_types_again():
    again = [
        f"{path}: {name}"
        for path, body in _modules()
        for node in body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for name in sorted(_imported(body) & _imported(node.body))
    ]
    assert again == []
