"""Every command line on every page names commands, options, make targets and distributions that exist."""

from __future__ import annotations

import re
import sys
from functools import cache

import click

from rpl_core.cli.main import rpl

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROGRAMS = {"rpl", "rocm-perf", "rocm-perf-lab"}


def _commands(documentation):
    for page in documentation.pages:
        for block in documentation.blocks(page):
            for command in block.commands:
                yield page, command.words
        for span in documentation.spans(page.read_text(encoding="utf-8")):
            words = span.split()
            if len(words) > 1 and words[0] in PROGRAMS:
                yield page, tuple(words)


def _own_command(page) -> tuple[str, ...]:
    """The command that the page itself adds, where it is about that."""
    found = re.search(r'"rpl\.commands"\]\n(\w+) = ', page.read_text(encoding="utf-8"))
    return (found[1],) if found and page.parent.name == "kinds" else ()


def _options_of(command: click.Command) -> set[str]:
    params = command.get_params(click.Context(command))
    names = {name for p in params for name in (*p.opts, *p.secondary_opts) if name.startswith("-")}
    return names | {"-h", "--help"}


_options = cache(_options_of)


def _problem(words: tuple[str, ...]) -> str | None:
    """The first word that no command or option answers to."""
    command: click.Command = rpl
    context = click.Context(rpl)
    for word in words[1:]:
        if word in ("--", "|", "||"):
            return None
        if word.startswith("-") and word != "-":
            if word.partition("=")[0] not in _options(command):
                return word
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return word if re.fullmatch(r"[a-z-]+", word) else None
            command = found
    return None


def test_commands_and_options_on_the_pages_exist(documentation):
    seen = 0
    for page, words in _commands(documentation):
        if words[0] in PROGRAMS and words[1:2] != _own_command(page):
            seen += 1
            assert _problem(words) is None, f"{page.name}: {' '.join(words)}: {_problem(words)}"
    assert seen > 60


def test_an_unknown_option_would_be_noticed():
    assert _problem(("rpl", "profile", "--no-such-option")) == "--no-such-option"
    assert _problem(("rpl", "no-such-command")) == "no-such-command"


def test_make_targets_on_the_pages_exist_and_ci_calls_the_test_command(documentation):
    makefile = documentation.page("Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    named = set()
    for page in documentation.pages:
        text = page.read_text(encoding="utf-8")
        named |= set(re.findall(r"(?:`|^\$ )make (\w+)", text, re.MULTILINE))
    assert {"demo", "test", "dev"} <= named
    assert named <= targets
    assert re.search(r"^make test$", documentation.page(".ci/run").read_text(encoding="utf-8"), re.MULTILINE)


def test_packages_that_the_pages_install_are_ours(documentation):
    folders = (documentation.root, documentation.root / "metapackage", *documentation.plugins)
    projects = [folder / "pyproject.toml" for folder in folders]
    ours = {tomllib.loads(p.read_text(encoding="utf-8"))["project"]["name"] for p in projects}
    named = set()
    for name in ("README.md", "docs/USER_GUIDE.md", "docs/troubleshooting.md", "metapackage/README.md"):
        text = documentation.page(name).read_text(encoding="utf-8")
        named |= set(re.findall(r"pip install ([a-z][\w-]+)", text))
    assert {"rpl-gfx942", "rocm-perf-lab"} <= named
    assert named <= ours
    assert "rpl" not in ours
