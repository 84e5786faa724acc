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


def test_no_module_defines_a_name_twice():
    twice = []
    for top in (ROOT / "rpl_core", *(ROOT / "plugins").glob("*/src"), ROOT / "metapackage" / "src"):
        for path in sorted(top.rglob("*.py")):
            seen: set[str] = set()
            for name in _names(ast.parse(path.read_text()).body):
                if name in seen:
                    twice.append(f"{path.relative_to(ROOT)}: {name}")
                seen.add(name)
    assert twice == []
