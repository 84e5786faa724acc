"""The page about the tools names those that the server has, and what it says of them holds."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from rpl_core.errors import UsageError
from rpl_mcp.optimizing import OptimizeTools
from rpl_mcp.running import Allowed, Runner
from rpl_mcp.server import make_server
from rpl_mcp.tools import ReplayComparison, Tools
from rpl_vmreplay.cli.replay import _failure_document

PAGE = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    allowed, runner = Allowed.of(root, [], accept=False), Runner(root, (), 1.0)
    server = make_server(Tools(allowed, runner), OptimizeTools(allowed, runner))
    return {tool.name: tool for tool in anyio.run(server.list_tools)}


def test_the_table_of_tools_is_complete(tools):
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", PAGE.partition("## The tools")[2], re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"[a-z_]+", row)]
    assert sorted(named) == sorted(tools)


def test_the_usual_number_of_kernels_is_told(tools):
    usual = tools["profile"].input_schema["properties"]["top"]["default"]
    assert f"at most `top` ({usual})" in PAGE


def test_every_argument_that_is_not_plain_is_described(tools):
    """What a model can't guess from a name: paths, commands, devices."""
    for name in ("command", "recording", "run", "source", "device", "build"):
        for tool in tools.values():
            field = tool.input_schema["properties"].get(name)
            assert field is None or "description" in field or "$ref" in field, (tool.name, name)


def test_the_result_of_a_replayed_comparison_has_the_keys_that_rpl_prints():
    assert set(ReplayComparison.model_fields) == set(_failure_document(UsageError("")))
