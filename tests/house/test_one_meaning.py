"""A name of a module is given once: where modules are put together, the later constant wins everywhere."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SOURCES = ("rpl_core", "metapackage/src", "native/python", "plugins")


def _given(tree: ast.Module) -> Iterator[str]:
    """The names that statements of the module itself give, but for branches, where either one counts."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if not any("overload" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            yield from (p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store))


def _twice(text: str) -> list[str]:
    return [name for name, count in Counter(_given(ast.parse(text))).items() if count > 1]


@pytest.mark.parametrize("folder", _SOURCES)
def test_no_name_of_a_module_is_given_twice(folder: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "tests" not in path.parts and (names := _twice(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_what_counts_as_twice() -> None:
    assert _twice("A, B = 1, 2\nB = 3\n") == ["B"]
    assert _twice("def f(): pass\nf = 1\n") == ["f"]
    assert _twice("A = {}\nA['x'] = 1\nif A:\n    B = 1\nelse:\n    B = 2\n") == []
    assert _twice("@overload\ndef f(): ...\n@overload\ndef f(x): ...\ndef f(x=0): ...\n") == []
