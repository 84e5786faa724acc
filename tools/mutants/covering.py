"""Which tests ran a line: from a coverage file with one context per test, and how long each of them took."""

from __future__ import annotations

import ast
import re
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
    """Look-ups in one coverage file. ``seconds`` per test; ``root`` is the checkout that was measured."""

    data: CoverageData
    root: Path
    seconds: dict[str, float]

    @classmethod
    def read(cls, coverage: Path, root: Path, log: Path) -> Covering:
        """``log``: what pytest printed with ``--durations=0``."""
        data = CoverageData(str(coverage))
        data.read()
        seconds: dict[str, float] = {}
        for spent, test in _DURATION.findall(log.read_text(encoding="utf-8")):
            seconds[test] = seconds.get(test, 0.0) + float(spent)
        return cls(data, root, seconds)

    def tests(self, mutant: Mutant, budget_s: float) -> tuple[list[str], int]:
        """The tests that ran the changed lines, and how many of them the budget leaves out.

        Those whose place has most words in common with the mutant's come first, then the quickest.
        """
        by_line = self.data.contexts_by_lineno(str(self.root / mutant.path))
        first, last = _statement(mutant)
        contexts = {name for line in range(first, last + 1) for name in by_line.get(line, ())} - {""}
        if not contexts or _runs_on_import(mutant):
            # Run once, when the first test imported it: who runs any line of the file sees the value.
            contexts |= {name for names in by_line.values() for name in names} - {""}
        if not contexts:
            contexts = self._of_distribution(mutant)
        words = set(Path(mutant.path).with_suffix("").parts)
        tests = sorted(
            {name.rsplit("|", 1)[0] for name in contexts},
            key=lambda test: (-len(words & set(Path(test.split(".py::")[0]).parts)), self._needs(test), test),
        )
        spent, kept = 0.0, []
        for test in tests:
            spent += self._needs(test)
            if kept and spent > budget_s:
                break
            kept.append(test)
        return kept, len(tests) - len(kept)

    def _of_distribution(self, mutant: Mutant) -> set[str]:
        """For modules that hold nothing but constants: the tests of their distribution."""
        folder = "/".join(mutant.path.split("/")[:2])
        return {test for test in self.seconds if test.startswith(folder)}

    def _needs(self, test: str) -> float:
        return self.seconds.get(test, _UNKNOWN)


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


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
