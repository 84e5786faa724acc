"""An agent walks through a whole optimization on the emulated device: everything but an acceptance."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

pytestmark = [pytest.mark.clang, pytest.mark.long, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "optimize" / "smooth.hip"
START = "import sys; from rpl_core.cli import main; sys.exit(main())"
COMMAND = ["./smooth", "256", "1"]


@pytest.fixture
def build(hip_command, monkeypatch, native_build, emulator, tmp_path):
    """The words that compile the example, which is built with them."""
    del emulator  # says what is missing
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    source = Path(shutil.copy(EXAMPLE, tmp_path))
    words = hip_command("{source}", "{output}")
    subprocess.run([word.format(source=source, output=tmp_path / "smooth") for word in words], check=True)
    return words


def test_the_loop_of_an_agent_runs_without_a_gpu_and_accepts_nothing(build, tmp_path):
    words = ["mcp", "--root", str(tmp_path), "--allow-accept"]
    words += ["--allow-command", " ".join(build), "--allow-command", " ".join(COMMAND)]
    server = StdioServerParameters(command=sys.executable, args=["-c", START, *words], env=dict(os.environ))

    async def walk():
        async with Client(stdio_client(server)) as client:

            async def call(name, **arguments):
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, answer.content
                return answer.structured_content

            profile = await call("profile", command=COMMAND, device="gfx942-emu", runs=1)
            last = await call(
                "optimize_start",
                source="smooth.hip",
                command=COMMAND,
                build=build,
                output_files=["smooth.out:f32"],
                rtol=1e-5,
                device="gfx942-emu",
                metric="modelled-issue-cycles",
                max_candidates=1,
                runs=1,
            )
            seen = {}
            while (stage := last["waiting_for"]) is not None:
                last = seen[stage] = await call(f"optimize_{stage}")
            return profile, seen, await call("optimize_state", session=last["session"])

    profile, seen, state = anyio.run(walk)
    assert profile["profile"]["provenance"]["origin"] == "modelled"
    assert list(seen) == ["propose", "build", "measure", "verdict"]
    assert "unroll" in seen["propose"]["diff"]
    assert all(guard["passed"] for guard in seen["propose"]["source_guards"])
    assert seen["build"]["build"]["reproducible"] is True
    modelled = seen["measure"]["evidence"]["modelled"]
    assert modelled["origin"] == "modelled"
    assert seen["measure"]["evidence"]["measurement"] is None
    gain = 1 - modelled["new"] / modelled["base"]
    verdict = seen["verdict"]["judgement"]["verdict"]
    assert verdict == ("no_verdict" if gain >= 0.02 else "rejected")
    assert seen["verdict"]["judgement"]["stage"] == "model"
    (candidate,) = state["optimize"]["candidates"]
    assert candidate["modelled_gain"] == pytest.approx(gain)
    assert state["optimize"]["accepted_source"] is None
    assert sorted(path.name for path in tmp_path.glob("*.hip")) == ["smooth.hip"]
    verify = [sys.executable, "-c", START, "ledger", "verify", str(tmp_path / state["session"])]
    assert subprocess.run(verify, check=False, capture_output=True).returncode == 0
