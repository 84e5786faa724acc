"""One declaration per record: a model and a value with largely the same fields are named with a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "DEVELOPER_GUIDE.md"
#: Part of all fields of two classes that both have, from which on they say the same thing twice.
ALIKE = 0.7
#: Classes with fewer fields are alike by chance.
FEWEST_FIELDS = 3


@attrs.frozen
class Class:
    name: str
    bases: frozenset[str]
    decorators: frozenset[str]
    fields: frozenset[str]


def classes() -> Iterator[Class]:
    for package in ("rpl_core", "plugins/*/src", "metapackage/src"):
        for path in sorted(file for folder in ROOT.glob(package) for file in folder.rglob("*.py")):
            text = path.read_text()
            if "\nclass " in text:  # parsing everything takes seconds
                yield from (_class(n) for n in ast.parse(text).body if isinstance(n, ast.ClassDef))


def _class(node: ast.ClassDef) -> Class:
    declared = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
    return Class(
        node.name,
        frozenset(map(ast.unparse, node.bases)),
        frozenset(ast.unparse(one).partition("(")[0] for one in node.decorator_list),
        frozenset(target.id for target in declared if isinstance(target, ast.Name)),
    )


def _twice(known: list[Class]) -> set[tuple[str, str]]:
    """(model or record, value) of those that are alike."""
    models = {"BaseModel"}
    while more := {one.name for one in known if one.bases & models} - models:
        models |= more
    written = [one for one in known if one.bases & models or "record" in one.decorators]
    values = [one for one in known if one.decorators & {"frozen", "attrs.frozen", "attrs.define"}]
    return {
        (a.name, b.name)
        for a in written
        for b in values
        if min(len(a.fields), len(b.fields)) >= FEWEST_FIELDS
        and len(a.fields & b.fields) >= ALIKE * len(a.fields | b.fields)
    }


def test_records_that_are_declared_twice_are_named_with_their_reason():
    known = list(classes())
    assert sum("record" in one.decorators for one in known) > 20  # the search itself works
    section = GUIDE.read_text().partition("## How a record is declared")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `(\w+)` \| `(\w+)` \| \w", section, re.MULTILINE))
    assert _twice(known) == named, "make it one record, or give the reason in the developer guide"


def test_the_search_finds_a_pair():
    fields = frozenset({"name", "total_ns", "share"})
    model = Class("PhaseDoc", frozenset({"Part"}), frozenset(), fields)
    value = Class("Phase", frozenset(), frozenset({"frozen"}), fields | {"run"})
    base = Class("Part", frozenset({"BaseModel"}), frozenset(), frozenset())
    assert _twice([base, model, value]) == {("PhaseDoc", "Phase")}
    assert _twice([base, model, attrs.evolve(value, fields=fields | {"run", "lane"})]) == set()
