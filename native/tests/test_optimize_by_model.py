"""``rpl optimize --metric``: the whole loop on the emulated device, in which nothing is accepted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rpl_testkit.fixtures import CommandLine

pytestmark = [pytest.mark.clang, pytest.mark.long, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "optimize" / "smooth.hip"
TUNED = Path(__file__).parents[2] / "plugins" / "rpl_autotune" / "tests" / "autotune" / "blur.hip"
#: Of examples/testbed, with small sizes.
PROGRAMS = {
    "attention": "64",
    "gemm": "32",
    "histogram": "2000",
    "mfma_gemm": "32",
    "pointer_chase": "200",
    "reduction": "2000",
    "softmax": "4 100",
    "stencil": "32 1",
}
LOOP = "    for (int k = 0; k < taps; ++k) {\n"
SUM = "      sum += weights[k] * in[i + k];\n"
CANDIDATES = [
    {"find": "k < taps; ++k) {", "replace": "k < taps - 1; ++k) {", "summary": "wrong results"},
    {"find": LOOP, "replace": f"#pragma unroll 4\n{LOOP}", "summary": "fewer instructions"},
    {"find": SUM, "replace": f"{SUM}      sum = 2.0f * sum - sum;\n", "summary": "more instructions"},
]


def test_the_loop_runs_without_a_gpu_and_accepts_nothing(
    hip_command, monkeypatch, native_build, emulator, tmp_path
):
    del emulator  # says what is missing
    monkeypatch.chdir(tmp_path)
    source = Path(shutil.copy(EXAMPLE, tmp_path))
    words = hip_command("{source}", "{output}")
    subprocess.run([word.format(source=source, output="smooth") for word in words], check=True)
    script = tmp_path / "candidates.json"
    script.write_text(json.dumps([{"kernel": "smooth", **one} for one in CANDIDATES]))
    monkeypatch.setenv("RPL_SCRIPTED_CANDIDATES", str(script))
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    options = ["--device", "gfx942-emu", "--metric", "modelled-issue-cycles", "--proposer", "scripted"]
    options += ["--auto-approve", "--build", " ".join(words), "--output-file", "smooth.out:f32"]
    options += ["--rtol", "1e-5", "--output", "session", "./smooth", "256", "1"]
    run = CommandLine(monkeypatch)
    ran = run("-p", "rpl_testkit.scripted_proposer", "optimize", *options)
    assert ran.exit_code == 75, ran.stderr
    assert "by the model modelled-issue-cycles; nothing was measured" in ran.stdout
    told = json.loads((tmp_path / "session" / "optimize.json").read_text())
    found = {one["summary"]: one for one in told["candidates"]}
    wrong, fewer, more = (found[one["summary"]] for one in CANDIDATES)
    assert (wrong["judgement"]["verdict"], wrong["judgement"]["stage"]) == ("rejected", "equivalence")
    assert (fewer["judgement"]["verdict"], fewer["judgement"]["stage"]) == ("no_verdict", "model")
    assert (fewer["origin"], fewer["metric"]) == ("modelled", "modelled-issue-cycles")
    assert 0.3 < fewer["modelled_gain"] < 0.9
    assert fewer["measured_gain"] is fewer["kernel_gain"] is fewer["first_kernel_gain"] is None
    assert (more["judgement"]["verdict"], more["judgement"]["stage"]) == ("rejected", "model")
    assert more["modelled_gain"] < 0
    assert told["accepted_source"] is None
    assert "#pragma unroll 4" in (tmp_path / "session" / told["modelled_source"]).read_text()
    assert sorted(path.name for path in tmp_path.glob("*.hip")) == ["smooth.hip"]
    assert source.read_bytes() == EXAMPLE.read_bytes()
    assert run("ledger", "verify", "session").exit_code == 0


def test_constants_are_searched_by_the_model(hip_command, monkeypatch, native_build, emulator, tmp_path):
    """Launches follow the tile; one value computes something else, and the model can't accept any."""
    del emulator
    monkeypatch.chdir(tmp_path)
    shutil.copy(TUNED, tmp_path)
    words = hip_command("{source}", "{output}")
    subprocess.run([word.format(source="blur.hip", output="blur") for word in words], check=True)
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    options = ["--device", "gfx942-emu", "--metric", "modelled-issue-cycles", "--auto-approve", "--tune"]
    options += ["--max-iters", "1", "--build", " ".join(words), "--output-file", "blur.out:f32"]
    run = CommandLine(monkeypatch)
    ran = run("optimize", "blur.hip", *options, "-o", "session", "./blur 2000")
    told = json.loads((tmp_path / "session" / "optimize.json").read_text())
    lines = [json.loads(line) for line in (tmp_path / "session" / "tuning.jsonl").read_text().splitlines()]
    by_tile = {line["values"]["TILE"]: line for line in lines}
    assert by_tile.keys() == {4, 8, 16, 32, 64}, ran.stderr
    assert "other results" in by_tile[8]["problem"]
    assert "4096 work-items" in by_tile[64]["problem"]
    timed = {tile: line["value"] for tile, line in by_tile.items() if line["value"] is not None}
    assert timed.keys() == {4, 16, 32}
    # Per SIMD: a workgroup of 16 or 256 work-items has one wave on each, one of 1024 has four.
    assert timed == {4: timed[16], 16: timed[16], 32: 4 * timed[16]}
    assert told["accepted_source"] is None
    assert run("ledger", "verify", "session").exit_code == 0


def test_no_program_of_the_testbed_is_left_out():
    assert sorted(PROGRAMS) == sorted(path.stem for path in (EXAMPLES / "testbed").glob("*.hip"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_testbed_is_optimized(
    name, hip_command, monkeypatch, native_build, emulator, tmp_path
):
    """One candidate of what is installed, which the program's own check and the model judge; or none."""
    del emulator
    monkeypatch.chdir(tmp_path)
    for file in (f"{name}.hip", "check.h"):
        shutil.copy(EXAMPLES / "testbed" / file, tmp_path)
    words = hip_command("{source}", "{output}")
    subprocess.run([word.format(source=f"{name}.hip", output=name) for word in words], check=True)
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    options = ["--device", "gfx942-emu", "--metric", "modelled-issue-cycles", "--auto-approve"]
    options += ["--max-iters", "1", "--build", " ".join(words), "--validate", "{command}", "-o", "session"]
    ran = CommandLine(monkeypatch)("optimize", f"{name}.hip", *options, f"./{name} {PROGRAMS[name]}")
    told = json.loads((tmp_path / "session" / "optimize.json").read_text())
    assert told["accepted_source"] is None
    if not told["candidates"]:
        assert ran.exit_code == 1, ran.stderr
        # Or the only kernel that is worth it is the runtime's own: HIP 6.4 copies by one.
        assert re.search("ranked: nothing to (?:try for|change in __amd_rocclr_)", ran.stderr), ran.stderr
        return
    (found,) = told["candidates"]
    verdict = found["judgement"]["verdict"]
    assert ran.exit_code == {"no_verdict": 75, "rejected": 1}[verdict], ran.stderr
    assert found["judgement"]["stage"] == "model", ran.stderr
    # Whatever a softmax takes for the maximum cancels: its results don't show that the maximum is wrong.
    assert found["judgement"]["verified"] is (found["kernel"] != "row_maximum"), ran.stderr
    assert found["modelled_gain"] is not None
    assert found["measured_gain"] is None
