"""A number with its noun and verb: "1 dispatch has", never "1 dispatches have"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_VERBS = "are|have|were|do|end|begin|lie|lay|hold|came|come|differ|share|match|change|exceed|agree|need|take"
#: A plural, with a word or two before or after it, and its verb.
_SAID = re.compile(rf"^ (?:[a-z.]+ ){{0,2}}[A-Za-z]+s(?: [a-z]+)? (?:{_VERBS})\b")
#: "3 of the 5 runs hold it", and what several things have or match.
_COUNTED = re.compile(r" (?:of|of the|and) $")
#: Counts that are never one: sizes, limits of registers, what is said of several matches only.
_SEVERAL = ("bytes", "VGPRs", "SGPRs", "registers", "kernels match", "loops that", "recordings are taken")
_SEVERAL += ("measurements were begun", "of its runs")
#: Below rpl-analysis in the order of imports, which brings `counted`; these say figures of replays.
_WITHOUT = ("rpl_testkit", "rpl_vmreplay")


def _messages(tree: ast.AST) -> Iterator[tuple[int, str, ast.expr, str]]:
    """Of each text with figures: its line, what stands before a figure, the figure, and what follows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [*node.values, ast.Constant("")]
            for number, part in enumerate(parts[:-1]):
                before, after = parts[number - 1] if number else None, parts[number + 1]
                if isinstance(part, ast.FormattedValue) and isinstance(after, ast.Constant):
                    told = str(before.value) if isinstance(before, ast.Constant) else ""
                    yield node.lineno, told, part.value, str(after.value)


def _is_fixed(value: ast.expr) -> bool:
    """A constant of the module, a name such as that of a file, or what says its noun itself."""
    if isinstance(value, ast.Call):
        return not (isinstance(value.func, ast.Name) and value.func.id == "len")
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return name.isupper() or name in ("name", "layout", "candidate", "agent", "slow_share")


def test_no_count_of_one_stands_before_a_plural_and_its_verb():
    sources = [*ROOT.glob("rpl_core/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {{{ast.unparse(value)}}}{after}"
        for path in sorted(sources)
        if not set(_WITHOUT) & set(path.parts)
        for line, before, value, after in _messages(ast.parse(path.read_text(encoding="utf-8")))
        if _SAID.match(after)
        and not _COUNTED.search(before)
        and not _is_fixed(value)
        and not any(word in after for word in _SEVERAL)
    ]
    assert not found, "say it with `counted`, or by the number of things:\n" + "\n".join(found)
