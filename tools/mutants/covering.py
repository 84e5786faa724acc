"""Which tests run the statements that a draw changes: one run of the default leg, with a marker before each.

A marker is put in where Python loads the module, in the processes that tests start too, and writes the
running test down once. No file of the tree is changed. What a test file showed is kept under the hash of its
text: a run that was stopped goes on, and files that are new or changed since run alone.

What is outside of functions runs at import, which tells nothing: there each function counts that stands in
the module, or names what the statement defines. Where no marker saw a test, as of functions that are called
at import, all tests of files that name the module do.
"""

from __future__ import annotations

import ast
import hashlib
import json
import marshal
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from places import Mutant

__all__ = ["MOST_TESTS", "covering_tests", "map_tests", "passing_tests"]

_CHILDREN = Path(__file__).resolve().parent / "children"
_CODES, _MARKS, _TESTS, _FILES = "codes.json", "marks", "tests", "files"
_CALLED = "__rpl_ran__"
_KINDS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Of a mutant that more tests run, these meet it: each file's cheapest ones, then each file's next.
MOST_TESTS = 160
_A_TURN = 4


def map_tests(
    mutants: Sequence[Mutant | None], files: Iterable[str], root: Path, kept: Path, workers: int
) -> None:
    """Run the files that are not mapped yet; ``mutants`` by their number, None for one whose text is gone."""
    kept.mkdir(parents=True, exist_ok=True)
    (kept / _MARKS).touch()  # no test may come by any
    complete = _rows(kept / _FILES)
    due = [file for file in files if [file, _digest(root / file)] not in complete]
    if not due:
        return
    codes = {}
    for path, marked in _marked_trees(mutants, root).items():
        place = kept / f"{path.replace('/', '.')}.code"
        place.write_bytes(marshal.dumps(compile(marked, str(root / path), "exec", dont_inherit=True)))
        codes[os.path.realpath(root / path)] = str(place)
    (kept / _CODES).write_text(json.dumps(codes), encoding="utf-8")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_CHILDREN), os.environ.get("PYTHONPATH")))),
        "RPL_MARKED_CODES": str(kept / _CODES),
        "RPL_MARKS": str(kept / _MARKS),
        "RPL_MAPPED": str(kept),
    }
    command = [sys.executable, __file__, "-n", str(workers), "--dist", "worksteal", *due]
    with (kept / "map.log").open("ab") as log:
        code = subprocess.run(
            command, cwd=root, env=environment, stdout=log, stderr=log, check=False
        ).returncode
    if code not in (0, 1):
        sys.exit(f"the map is not finished ({code}, see {kept / 'map.log'}): the same command goes on")
    _append(kept / _FILES, *([file, _digest(root / file)] for file in due))


def covering_tests(number: int, path: str, own: str, root: Path, kept: Path) -> list[str]:
    """The tests that run the statement of the mutant ``number`` in the file ``path``, the best first.

    Each file gives its cheapest tests, those of the folder ``own`` first, then each its next ones. What a
    fixture ran counts for all tests of the file, as it may be kept for them.
    """
    seconds = _seconds(kept)
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        by_file[_file(test)].append(test)
    running, fixtures = _marks(kept).get(number, (set(), set()))
    found = {test for test in running if test in seconds}
    found.update(test for file in {_file(test) for test in fixtures} for test in by_file[file])
    digests = dict(_complete(kept))
    if not found:
        module = path.removesuffix(".py").partition("/src/")[2] or path.removesuffix(".py")
        name = re.compile(re.escape(module.removesuffix("/__init__").replace("/", ".")) + r"\b")
        naming = [
            file for file in by_file if (root / file).exists() and name.search((root / file).read_text())
        ]
        found.update(test for file in naming for test in by_file[file])
    turns: list[tuple[int, bool, float, str, list[str]]] = []
    for file in {_file(test) for test in found}:
        if not (root / file).exists() or digests.get(file) != _digest(root / file):
            continue
        tests = sorted((test for test in by_file[file] if test in found), key=lambda test: seconds[test])
        for first in range(0, len(tests), _A_TURN):
            some = tests[first : first + _A_TURN]
            turns.append((first, not file.startswith(own), sum(seconds[test] for test in some), file, some))
    return [test for *_, some in sorted(turns) for test in some]


def passing_tests(kept: Path) -> set[str]:
    """Those that passed without any change."""
    return set(_seconds(kept))


def _marked_trees(mutants: Sequence[Mutant | None], root: Path) -> dict[str, ast.Module]:
    """Path -> its tree with the markers of all mutants of it, or that use what a mutant outside defines."""
    sources = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in (root / "rpl_core", root / "metapackage" / "src", *root.glob("plugins/*/src"))
        for path in folder.rglob("*.py")
    }
    trees: dict[str, ast.Module] = {}

    def tree_of(path: str) -> ast.Module:
        return trees.setdefault(path, ast.parse(sources[path], path))

    for number, mutant in enumerate(mutants):
        if mutant is None:
            continue
        lines = (mutant.line, mutant.line + max(0, len(mutant.before) - 1))
        place = _place(tree_of(mutant.path), lines)
        if place is not None:
            _insert(*place, number)
            continue
        names = "|".join(map(re.escape, _defined(tree_of(mutant.path), lines))) or "(?!)"
        for path in [
            path for path in sources if path == mutant.path or re.search(rf"\b({names})\b", sources[path])
        ]:
            for node in [node for node in ast.walk(tree_of(path)) if isinstance(node, _KINDS)]:
                text = "" if path == mutant.path else ast.unparse(node)
                if path == mutant.path or re.search(rf"\b({names})\b", text):
                    _insert(node.body, _after_docstring(node), number)
    return trees


def _place(tree: ast.Module, lines: tuple[int, int]) -> tuple[list[ast.stmt], int] | None:
    """The statements, and which of them comes behind the marker; None outside of functions."""
    place: tuple[list[ast.stmt], int] | None = None
    inside, body = False, tree.body
    while True:
        holding = [i for i, node in enumerate(body) if not _is_marker(node) and _holds(node, lines)]
        if not holding:
            return place
        node = body[holding[0]]
        if inside:
            place = (body, holding[0])
        if isinstance(node, _KINDS):
            inside, place = True, (node.body, _after_docstring(node))
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [case.body for case in getattr(node, "cases", [])]
        for handler in getattr(node, "handlers", []):
            # The line of `except` itself matters to those who come there.
            if inside and _holds(handler, lines):
                place = (handler.body, 0)
            blocks.append(handler.body)
        within = [b for b in blocks if b and _first(b[0]) <= lines[0] and lines[1] <= (b[-1].end_lineno or 0)]
        if not within:
            return place
        body = within[0]


def _holds(node: ast.stmt | ast.excepthandler, lines: tuple[int, int]) -> bool:
    return _first(node) <= lines[0] and lines[1] <= (node.end_lineno or 0)


def _first(node: ast.stmt | ast.excepthandler) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])


def _is_marker(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _CALLED in (getattr(n, "id", "") for n in ast.walk(node))


def _after_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return int(ast.get_docstring(node, clean=False) is not None)


def _insert(body: list[ast.stmt], index: int, number: int) -> None:
    at = body[min(index, len(body) - 1)]
    call = ast.Call(ast.Name(_CALLED, ast.Load()), [ast.Constant(number)], [])
    body.insert(index, ast.fix_missing_locations(ast.copy_location(ast.Expr(call), at)))


def _defined(tree: ast.Module, lines: tuple[int, int]) -> list[str]:
    for node in tree.body:
        if _holds(node, lines):
            if isinstance(node, (*_KINDS, ast.ClassDef)):
                return [node.name]
            return sorted(
                {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            )
    return []


# What is kept.


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:24]


def _append(path: Path, *rows: object) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _rows(path: Path) -> list[Any]:
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


@cache
def _complete(kept: Path) -> list[list[str]]:
    return _rows(kept / _FILES)


@cache
def _seconds(kept: Path) -> dict[str, float]:
    """Of the tests that passed: what fails with markers, or anyway, can't tell a change."""
    return {test: seconds for test, _, seconds, passed in _rows(kept / _TESTS) if passed}


@cache
def _marks(kept: Path) -> dict[int, tuple[set[str], set[str]]]:
    """Number -> tests that run the statement, and those whose fixtures do."""
    found: dict[int, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for line in (kept / _MARKS).read_text(encoding="utf-8").splitlines():
        number, _, current = line.partition(" ")
        test, _, phase = current.rpartition(" (")
        found[int(number)][phase != "call)"].add(test)
    return found


def _file(test: str) -> str:
    return test.partition("::")[0]


# In the processes that map: pytest finds these as a plugin.


def pytest_configure(config: pytest.Config) -> None:
    # Asked of pytest: a test of these tools runs in a worker's environment without being one.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Spent())  # those that start the workers hear of all


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = Path(os.environ["RPL_MAPPED"])
    known = {(test, digest) for test, digest, *_ in _rows(kept / _TESTS)}
    digests = {file: _digest(config.rootpath / file) for file in {_file(item.nodeid) for item in items}}
    items[:] = [item for item in items if (item.nodeid, digests[_file(item.nodeid)]) not in known]


class _Spent:
    def __init__(self) -> None:
        self._so_far: dict[str, tuple[float, bool]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds, passed = self._so_far.pop(report.nodeid, (0.0, True))
        seconds, passed = seconds + report.duration, passed and not report.failed
        if report.when != "teardown":
            self._so_far[report.nodeid] = (seconds, passed)
            return
        digest = _digest(Path(_file(report.nodeid)))
        _append(Path(os.environ["RPL_MAPPED"]) / _TESTS, [report.nodeid, digest, round(seconds, 3), passed])


if __name__ == "__main__":
    import pytest

    options = ["-q", "-p", "no:cacheprovider", "-p", "covering", "-m", "not long", "--tb=short"]
    raise SystemExit(pytest.main([*options, *sys.argv[1:]]))
