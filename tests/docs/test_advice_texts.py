"""Every advice of the product can be followed: its command and option exist, its device and package are real.

Walked are the next steps and remedies in the sources, and the commands of the classifier's advice.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import click
import pytest

from rpl_analysis.advice.rule_file import builtin_advice
from rpl_core.cli.main import rpl
from rpl_core.plugins.catalog import OPTIONS
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host

ROOT = Path(__file__).parents[2]
_META = metadata.distribution("rocm-perf-lab")
OWN = {re.split(r"[^a-z0-9-]", line)[0] for line in _META.requires or ()} | {"rocm-perf-lab"}
_ADVISING = ("next_step", "remedy")
#: Stands for what is only known when the text is made.
_HOLE = "\0"
_COMMAND = re.compile(
    r"`rpl ([^`]+)`|(?:\A|[:;,] )rpl ((?:[a-z][a-z-]* ?|--[a-z][a-z-]*[ =]?|[^`.,;(a-z-]\S* ?)+)"
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
#: Programs whose options stand in texts, too.
_OF_OTHERS = re.compile(
    r"(?:rocprofv3|rocprof(?= --)|hipcc|clang\S*|pip|cmake|dask worker)`? [^;]*"
    r"|\"[^\"]*\"|[^;,]* of rocprofv3"
)


@cache
def _texts() -> list[tuple[str, str]]:
    """``(file:line, text)`` of every literal that is given as a next step or remedy."""
    found = []
    for folder in (ROOT / "rpl_core", *sorted((ROOT / "plugins").glob("*/src"))):
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.keyword) and node.arg in _ADVISING:
                    place = f"{path.relative_to(ROOT)}:{node.value.lineno}"
                    found += [(place, text) for text in _literals(node.value)]
    found += [
        (each.id, each.command.replace("{command}", _HOLE)) for each in builtin_advice() if each.command
    ]
    return found


def _literals(node: ast.expr) -> list[str]:
    """The texts that an expression may give: joined parts with holes, both branches of a choice."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(p.value) if isinstance(p, ast.Constant) else _HOLE for p in node.values)]
    if isinstance(node, ast.IfExp):
        return [*_literals(node.body), *_literals(node.orelse)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [a + b for a in _literals(node.left) or [_HOLE] for b in _literals(node.right) or [_HOLE]]
    return []


_GLOBAL = {name for parameter in rpl.params for name in parameter.opts}


@pytest.fixture(scope="module")
def host():
    return create_host(PluginSelection(only_distributions=frozenset(OWN)), config={})


@pytest.fixture(scope="module")
def options(host):
    """The options of each command by its words; of a command of commands those of all of them."""
    found: dict[tuple[str, ...], set[str]] = {}
    of_plugins = [c.value for c in host.catalog.of(OPTIONS).contributions]

    def look(command: click.Command, words: tuple[str, ...]) -> set[str]:
        own = {name for p in command.params for name in (*p.opts, *p.secondary_opts)} | {"--help"}
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None, name
                own |= look(inner, (*words, name))
        for option in of_plugins:
            if words and words[0] in option.commands:
                own |= {f"--{option.name}", f"--no-{option.name}"}
        found[words] = own
        return own

    look(rpl, ())
    return found


def _commands(text: str) -> list[list[str]]:
    return [(match[1] or match[2]).split() for match in _COMMAND.finditer(text)]


def test_there_is_advice_to_walk():
    assert len(_texts()) > 300
    assert sum(bool(_commands(text)) for _, text in _texts()) > 40


def test_every_command_and_its_options_exist(options):
    wrong = []
    for place, text in _texts():
        for words in _commands(text):
            named: tuple[str, ...] = ()
            for word in words:
                if (*named, word) not in options:
                    break
                named = (*named, word)
            if not named and not words[0].startswith("-") and _HOLE not in words[0]:
                wrong.append(f"{place}: rpl {words[0]} is no command")
            before = words[: words.index("--")] if "--" in words else words
            own = options[named] | _GLOBAL
            unknown = [word for word in before if _OPTION.fullmatch(word) and word not in own]
            wrong += [f"{place}: rpl {' '.join(named)} has no {word}" for word in unknown]
    assert wrong == []


def test_every_option_exists(options):
    wrong = [
        f"{place}: {option}"
        for place, text in _texts()
        for option in _OPTION.findall(_OF_OTHERS.sub("", text))
        if option not in options[()]
    ]
    assert wrong == []


def test_every_device_and_package_exists(host):
    models = [c.value for c in host.catalog.devices().contributions]
    devices = {name.lower() for model in models for name in (model.name, model.architecture)}
    wrong = []
    for place, text in _texts():
        named = re.findall(r"--device[ =]([\w.-]+)", text)
        strange = [name for name in named if name.lower() not in devices | {"name", "and", "or", "is", "out"}]
        wrong += [f"{place}: device {name}" for name in strange]
        for names in re.findall(r"pip install ((?:[a-z][a-z0-9_-]*(?:\[\w+\])?(?=[\s,;`']|$) ?)+)", text):
            own = [name.partition("[")[0].rstrip(",;`'") for name in names.split()]
            unknown = [n for n in own if n.startswith(("rpl", "rocm-perf")) and n not in OWN]
            wrong += [f"{place}: package {name}" for name in unknown]
    assert wrong == []


def test_texts_of_pages_of_the_documentation_exist():
    pages = {
        p.relative_to(ROOT / "docs").with_suffix("").as_posix().lower() for p in ROOT.glob("docs/**/*.md")
    }
    named = [(place, name) for place, text in _texts() for name in re.findall(r"`rpl docs ([\w/-]+)`", text)]
    missing = [
        (place, name)
        for place, name in named
        if name.lower() not in pages | {page.replace("_", "-") for page in pages}
        and not any(page.split("/")[-1].replace("_", "-") == name.lower() for page in pages)
        and not (ROOT / "docs" / name).is_dir()
    ]
    assert named
    assert missing == []


@pytest.mark.parametrize(
    ("kind", "name", "package"),
    [
        ("commands", "demo", "rocm-perf-lab"),
        ("devices", "gfx942-emu", "rpl-emu[profile]"),
        ("devices", "mi355x", "rpl-gfx950"),
    ],
)
def test_what_a_device_alone_lacks_is_named_by_its_package(kind, name, package):
    """Whoever installs one device has the table of packages, too: it lies in what all devices share."""
    brought = {entry.dist.name for entry in metadata.entry_points(group="rpl.packages") if entry.dist}
    needed = {re.split(r"[^a-z0-9-]", line)[0] for line in metadata.requires("rpl-gfx942") or ()}
    assert brought & needed
    from rpl_core.plugins.entry_points import provider_of

    assert provider_of(kind, name) == package
