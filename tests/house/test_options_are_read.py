"""An option that nobody reads promises something that never happens."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

from rpl_core.cli.main import rpl

ROOT = Path(__file__).resolve().parents[2]
#: Options that the code which uses them knows by another name.
READ_AS = {"llm_timeout": "timeout_s", "replay_llm": "replay", "allow_secret_lines": "harmless_lines"}


def _parameters(command: click.Command, path: str = "rpl") -> Iterator[tuple[str, str]]:
    """The name of each option and argument as the code receives it, with its command."""
    yield from ((param.name or "", path) for param in command.params)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _parameters(inner, f"{path} {name}")


def _names_read(tree: ast.AST) -> Iterator[str]:
    """Names whose value is used. Handing a value on under its own name (``top_p=top_p``) is no use of it."""
    handed_on = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg in (getattr(node.value, "id", None), getattr(node.value, "attr", None))
    }
    for node in ast.walk(tree):
        if id(node) in handed_on or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value).replace("-", "_")


def test_every_option_is_read_by_something():
    sources = [*(ROOT / "rpl_core").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    read = {name for path in sources for name in _names_read(ast.parse(path.read_text()))}
    parameters = dict(_parameters(rpl))
    assert len(parameters) > 150
    assert {
        name: command for name, command in parameters.items() if READ_AS.get(name, name) not in read
    } == {}


def test_an_option_that_is_only_handed_on_is_not_read():
    dead = "def run(top_p): request = Request(top_p=top_p, model=model); ask(top_p=request.top_p)"
    assert set(_names_read(ast.parse(dead))) == {"request", "Request", "ask"}
