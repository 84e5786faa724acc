"""Which tests ran a line: from a coverage file with one context per test, and how long each of them took."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import attrs
from coverage import CoverageData
from places import ROOT, Mutant

__all__ = ["Covering"]

_DURATION = re.compile(r"^(\d+\.\d+)s (?:call|setup|teardown) +(\S.*)$", re.MULTILINE)
#: Seconds that a test is taken to need where no run said so.
_UNKNOWN = 0.01


@attrs.frozen(eq=False)
class Covering:
    """Look-ups in what several measurements found. ``seconds`` per test."""

    measured: list[tuple[CoverageData, Path]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, folders: Iterable[Path]) -> Covering:
        """Each folder: ``coverage`` (paths below the root), ``log`` of pytest, ``sources`` as they were."""
        measured, seconds = [], {}
        for folder in folders:
            data = CoverageData(str(folder / "coverage"))
            data.read()
            measured.append((data, folder / "sources"))
            for spent, test in _DURATION.findall((folder / "log").read_text(encoding="utf-8")):
                seconds[test] = seconds.get(test, 0.0) + float(spent)
        return cls(measured, seconds)

    def tests(self, mutant: Mutant, budget_s: float) -> tuple[list[str], int]:
        """The tests that ran the changed lines, and how many of them the budget leaves out.

        Those whose place has most words in common with the mutant's come first, then the quickest.
        """
        here, anywhere = self._contexts(mutant)
        # Run once, when the first test imported it: who runs any line of the file sees the value.
        contexts = here | anywhere if not here or _runs_on_import(mutant) else here
        if not contexts:
            contexts = self._of_distribution(mutant)
        words = set(Path(mutant.path).with_suffix("").parts)
        tests = sorted(
            filter(_still_there, {name.rsplit("|", 1)[0] for name in contexts}),
            key=lambda test: (-len(words & set(Path(test.split(".py::")[0]).parts)), self._needs(test), test),
        )
        spent, kept = 0.0, []
        for test in tests:
            spent += self._needs(test)
            if kept and spent > budget_s:
                break
            kept.append(test)
        return kept, len(tests) - len(kept)

    def _contexts(self, mutant: Mutant) -> tuple[set[str], set[str]]:
        """Who ran the changed statement, and who ran any line of its file."""
        here: set[str] = set()
        anywhere: set[str] = set()
        for data, sources in self.measured:
            by_line = data.contexts_by_lineno(mutant.path)
            lines = _lines_then(sources / mutant.path, mutant) if by_line else ()
            here |= {name for line in lines for name in by_line.get(line, ())}
            anywhere |= {name for names in by_line.values() for name in names}
        return here - {""}, anywhere - {""}

    def _of_distribution(self, mutant: Mutant) -> set[str]:
        """For modules that hold nothing but constants: the tests of their distribution."""
        folder = "/".join(mutant.path.split("/")[:2])
        return {test for test in self.seconds if test.startswith(folder)}

    def _needs(self, test: str) -> float:
        return self.seconds.get(test, _UNKNOWN)


def _still_there(test: str) -> bool:
    """Whether the function of a test stands where it stood when it was measured."""
    path, _, name = test.partition("::")
    function = name.split("::")[-1].split("[")[0]
    return f"def {function}(" in _text(path)


@cache
def _text(path: str) -> str:
    place = ROOT / path
    return place.read_text(encoding="utf-8") if place.exists() else ""


def _lines_then(measured: Path, mutant: Mutant) -> Iterator[int]:
    """Where the lines of the changed statement stood when the tests were measured."""
    now = _text(mutant.path).splitlines()
    then = measured.read_text(encoding="utf-8").splitlines() if measured.exists() else []
    first, last = _statement(mutant)
    for old, new, size in difflib.SequenceMatcher(None, then, now, autojunk=False).get_matching_blocks():
        yield from (old + line - new for line in range(first, last + 1) if new < line <= new + size)


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(_text(path))


def _statement(mutant: Mutant) -> tuple[int, int]:
    """First and last line of the innermost statement around the change; of compound ones the header."""
    first, last = mutant.line, mutant.line + len(mutant.before) - 1
    best = (first, last)
    for node in ast.walk(_tree(mutant.path)):
        if isinstance(node, ast.stmt) and node.lineno <= first and last <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or last
            if last <= max(end, node.lineno):
                best = (node.lineno, max(end, node.lineno))
    return best


def _runs_on_import(mutant: Mutant) -> bool:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return not any(
        isinstance(node, functions) and node.body[0].lineno <= mutant.line <= (node.end_lineno or 0)
        for node in ast.walk(_tree(mutant.path))
    )
