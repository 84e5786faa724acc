"""The agent skill says only what rpl does: its commands, options, fields and labels exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rpl_core.cli.main import rpl

ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "skills" / "rocm-perf-lab" / "SKILL.md"
REFERENCE = SKILL.parent / "references" / "cli.md"
TEXT = SKILL.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip()
    for block in BLOCKS
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("rpl ")
] + re.findall(r"`(rpl [a-z][^`]*)`", TEXT)

#: Rows of a page's table of tools begin with their names, which a test of rpl-mcp compares with the server's.
TOOLS = {
    name
    for row in re.findall(
        r"^\| (`.*?) \|", (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    for name in re.findall(r"`([a-z_]+)`", row)
}


def test_its_tools_exist_and_none_is_left_out():
    told = set(re.findall(r"`([a-z_]+)`", TEXT))
    assert TOOLS - {"allowed_words"} <= told | {"optimize_state"}
    assert {name for name in told if name.startswith("optimize_")} - {"optimize_"} <= TOOLS


def test_the_command_reference_is_up_to_date():
    # In a process of its own: click remembers how a command's help was asked for first.
    script = ROOT / "tools" / "generate_cli_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], check=False)
    assert done.returncode == 0, "run: python tools/generate_cli_reference.py"


def test_the_help_of_each_command_shows_an_example():
    """Of those that plugins bring; one page holds the help of all."""
    helps = re.split(r"^## rpl ", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    shown = {text.split("\n")[0] for text in helps if f"\n  rpl {text.split(maxsplit=1)[0]}" in text}
    packages = ROOT / "plugins" / "rpl_amdgpu" / "src" / "rpl_amdgpu" / "packages.json"
    assert json.loads(packages.read_text())["commands"].keys() <= shown


def test_the_header_names_the_skill():
    header = re.match(r"---\nname: ([a-z0-9-]{1,64})\ndescription: (.{50,1024})\n---\n", TEXT)
    assert header
    assert header[1] == SKILL.parent.name


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_and_options_exist(line):
    words = shlex.split(line)[1:]
    command, context = rpl, click.Context(rpl, info_name="rpl")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words.pop(0))
        assert found is not None, line
        command = found
    own = words[: words.index("--")] if "--" in words else words
    params = command.get_params(click.Context(command, parent=context))
    known = {name for parameter in params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in own if word.startswith("--")} <= known


def test_its_fields_and_labels_exist():
    names = set()
    for path in (ROOT / "docs" / "schemas").glob("*.json"):
        names |= _names(json.loads(path.read_text(encoding="utf-8")))
    rows = [line for line in TEXT.splitlines() if line.startswith("| ")]
    told = {word for row in rows for word in re.findall(r"`([a-z_]+)`", row)} - {"rpl", *TOOLS}
    assert told <= names | {"unclassified"}
    assert len(told) > 15, "the tables name fields and labels"


def _names(value):
    found = set()
    if isinstance(value, dict):
        found |= set(value.get("properties", {})) | {v for v in value.get("enum", []) if isinstance(v, str)}
        found |= set(re.findall(r"\w+", str(value.get("pattern", ""))))
        for child in value.values():
            found |= _names(child)
    elif isinstance(value, list):
        for child in value:
            found |= _names(child)
    return found


def test_the_dominance_rules_are_told():
    assert "1 / (1 - f)" in TEXT
    assert "f < 0.7" in TEXT
    assert "## Never claim" in TEXT
