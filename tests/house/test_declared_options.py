"""Every option that a class declares is read by somebody: one that does nothing would promise something."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "rpl_core", *sorted((ROOT / "plugins").glob("*/src/*"))]


def _trees(folder, holding=""):
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    return [ast.parse(text) for text in texts if holding in text]


def _declared(trees):
    """Names of the fields that are options, by class."""
    makers = {"option", "keep_option"}
    return {
        node.name: {
            field.target.id
            for field in node.body
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.value, ast.Call)
            and getattr(field.value.func, "id", "") in makers
        }
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def _unread(trees):
    read = {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    return {
        f"{name}.{field}"
        for name, fields in _declared(trees).items()
        for field in fields
        if field not in read
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_option_is_declared_that_nothing_reads(folder):
    assert _unread(_trees(folder)) == set()


def test_options_are_declared_this_way():
    trees = [tree for folder in FOLDERS for tree in _trees(folder, holding="option(")]
    found = {name for name, fields in _declared(trees).items() if fields}
    commands = {"ProfileCall", "DeviceOption", "AnalysisOptions", "AnalyzeOptions", "OptimizeSettings"}
    commands |= {"CompareSettings", "RanksCall", "PromptSettings", "FormOptions"}
    commands |= {"ProgramOptions", "TimingOptions", "SearchOptions", "PlaceOptions"}
    assert found >= {*commands, "ModelRequest", "LlmSettings"}


def test_a_dead_option_is_found():
    text = (
        'class Model:\n    top_p: float = option("--top-p")\n    seed: int = option("--seed")\nprint(m.seed)'
    )
    assert _unread([ast.parse(text)]) == {"Model.top_p"}
