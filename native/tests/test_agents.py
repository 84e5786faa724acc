"""An agent captures a launch of a real program and compares code objects in it, by the tools of `rpl mcp`."""

from __future__ import annotations

import os
import shutil
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

pytestmark = [pytest.mark.clang, pytest.mark.long]

START = "import sys; from rpl_core.cli import main; sys.exit(main())"
TICK = "_Z4tickPKj"


@pytest.fixture
def root(native_build, hsa_runtime, hsa_program, module_pointers, emulator, tmp_path, monkeypatch):
    """A folder with ``./app``, which launches a kernel over the software KFD, and two code objects of it."""
    del emulator  # says what is missing
    folder = tmp_path / "root"
    folder.mkdir()
    for number, name in enumerate(("captured.hsaco", "other.hsaco")):
        shutil.copy(module_pointers(number), folder / name)
    launcher = native_build / "native" / "softkfd" / "softkfd-run"
    words = (launcher, "--executor", "emu", "--runtime", hsa_runtime, hsa_program("module_scenarios"))
    app = folder / "app"
    app.write_text(f"#!/bin/sh\nexec {' '.join(map(str, words))} {TICK} captured.hsaco\n")
    app.chmod(0o755)
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    monkeypatch.setenv("RPL_NATIVE_FOLDER", str(native_build))
    return folder


async def _ask(client: Client, name: str, **arguments: object) -> dict[str, object]:
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    assert isinstance(answer.structured_content, dict)
    return answer.structured_content


def test_an_agent_captures_a_launch_and_compares_code_objects_in_it(root):
    words = ["-c", START, "mcp", "--root", str(root), "--allow-command", "./app"]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

    async def talk():
        async with Client(stdio_client(server)) as client:
            missed = await _ask(client, "isolate", command=["./app"], kernel="no_such_kernel")
            made = await _ask(client, "isolate", command=["./app"], kernel="tick")
            compared = [
                await _ask(client, "replay_compare", capture=made["capture"], a="captured.hsaco", b=code)
                for code in ("captured.hsaco", "other.hsaco")
            ]
            return missed, made, compared

    missed, made, (same, other) = anyio.run(talk)
    assert (missed["exit_code"], missed["capture"]) == (1, None)
    assert (made["exit_code"], made["matches"]) == (0, 1), made
    assert (root / made["capture"] / "capture.json").is_file()
    # Few wrong versions of so small a kernel can be noticed, so that equal bytes prove little: no verdict.
    assert (same["exit_code"], same["comparison"]["verdict"]) == (75, "blind"), same
    assert (other["exit_code"], other["comparison"]["verdict"]) == (1, "different"), other
    assert "variable ticks" in other["comparison"]["reason"]
