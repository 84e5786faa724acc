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
_SEVERAL += ("measurements were begun", "of its runs", "numbers differ by", "kernels called", "kernels (")
_SEVERAL += ("fenced code blocks", "dispatches and copies of these lanes")
_SEVERAL += ("kernels with the least time share",)
#: A count of things before its noun in the plural, with no verb near.
_NOT = "has|is|was|less|others|shows|this|its|as"
_NOUN = re.compile(rf"^ (?!bytes|times as)(?:[a-z.-]+ ){{0,2}}?(?!(?:{_NOT})\b)[a-z]{{2,}}s\b(?!')")
#: Ends of what is a count by its form, such as ``len(found)`` or ``capture.regions``, and never fixed.
_COUNT = re.compile(
    r"^(?:(?:q\.)?count\(.*|len\(.*|int\(.*sum\(\)\)|.*\.(?:size|count|pairs|waves|launches|instructions|regions"
    r"|replays|processes|samples|count\(.*|hits|tokens|candidates|compared|kernels)|matches|pairs|count|machines"
    r"|launches|rest|left_out|skipped|begun|instructions|total|started)$"
)


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


def _is_count(value: ast.expr) -> bool:
    return bool(_COUNT.match(ast.unparse(value)))


def test_no_count_of_one_stands_before_a_plural():
    sources = [*ROOT.glob("rpl_core/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {{{ast.unparse(value)}}}{after}"
        for path in sorted(sources)
        for line, before, value, after in _messages(ast.parse(path.read_text(encoding="utf-8")))
        if ((_SAID.match(after) and not _is_fixed(value)) or (_is_count(value) and _NOUN.match(after)))
        and not _COUNTED.search(before)
        and not any(word in after for word in _SEVERAL)
    ]
    assert not found, "say it with `counted`, or by the number of things:\n" + "\n".join(found)
