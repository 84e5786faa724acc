"""The programs of examples/testbed on the emulated GPU: right results, profiles, captures and replays."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from rpl_testkit.requirements import absent, require

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]

TESTBED = Path(__file__).parents[2] / "examples" / "testbed"
PROGRAMS = sorted(path.stem for path in TESTBED.glob("*.hip"))
IN_SHORT = "reduction"
DEVICE = "gfx942-emu"
RPL = "import sys; from rpl_core.cli import main; sys.exit(main())"


@pytest.fixture
def built(native_build, emulator, hip_runtime, hip_program, monkeypatch):
    """``built("softmax")``: the program, where rpl finds what it needs to run it."""
    del emulator
    if not (native_build / "native" / "isolate" / "librpl_isolate.so").is_file():
        absent("libxxhash-dev", "without its header the capture tool is not built")
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    monkeypatch.setenv("RPL_NATIVE_FOLDER", str(native_build))
    return lambda name: hip_program(name, hip_runtime, TESTBED)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == IN_SHORT else pytest.mark.long) for name in PROGRAMS]
)
def test_a_program_is_profiled_captured_and_replayed(name, built, tmp_path, rpl_cli):
    """And finds its own results right, without which a program of the testbed ends with 1."""
    program, run, capture = built(name), tmp_path / "run", tmp_path / "capture"
    rpl_cli("profile", "--device", DEVICE, "--roofline", "-o", run, "--", program).assert_ok()
    profile, graph, roofline = (
        json.loads((run / f"{document}.json").read_text()) for document in ("profile", "dag", "roofline")
    )
    for document in (profile, graph, roofline):
        assert document["provenance"]["origin"] == "modelled"
        assert document["provenance"]["device"] == DEVICE
    assert profile["runtime_source"].startswith("modelled: ")
    assert profile["stability"]["cv"] is None
    heat = {one["kernel"]: one for one in profile["sections"]["instruction_heat"]["kernels"]}
    assert set(heat) == {kernel["name"] for kernel in profile["kernels"]}
    assert graph["status"] == roofline["status"] == "available"

    dominant = max(profile["kernels"], key=lambda kernel: kernel["runtime_ms"])["name"]
    pattern = f"^{re.escape(dominant.partition('(')[0])}"
    words = [sys.executable, "-c", RPL, "emu", "run", "--", program]
    ran = rpl_cli("isolate", "--kernel", pattern, "-o", capture, "--", *words).assert_ok()
    assert " wrong 0 of " in ran.stderr
    replayed = rpl_cli("replay", "full-vm", capture, "--device", DEVICE, "--json").assert_ok().json()
    assert replayed["reproduced"] is True, replayed


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "sizes"),
    [("softmax", ("8192", "4096")), ("attention", ("1024",)), ("pointer_chase", ("100000",))],
)
def test_the_sizes_of_published_workloads_give_right_results(name, sizes, built, over_softkfd, hip_runtime):
    ran = over_softkfd(hip_runtime, built(name), *sizes, executor="emu")
    assert ran.status == 0, ran.stdout + ran.stderr
    assert " wrong 0 of " in ran.stdout


@pytest.mark.long
def test_streams_that_wait_for_each_other_are_certain_edges(built, tmp_path, rpl_cli):
    run = tmp_path / "run"
    rpl_cli("profile", "--device", DEVICE, "-o", run, "--", built("attention"), "64").assert_ok()
    graph = json.loads((run / "dag.json").read_text())
    assert graph["lanes"] == 3, "two streams, and the queue on which HIP 6.4 copies by a kernel"
    assert {"kind": "measured_event", "confidence": "certain", "count": 1} in graph["edges"]
    assert graph["order_known"] is True


@pytest.mark.long
def test_a_program_that_is_wrong_says_so(over_softkfd, emulator, hip_runtime, hip_program, tmp_path):
    """Without a barrier the sums of the tree come too late."""
    del emulator
    require("ld.lld-22")
    source = (TESTBED / "reduction.hip").read_text()
    wrong = source.replace("part[threadIdx.x] = own;\n  __syncthreads();", "part[threadIdx.x] = own;")
    assert wrong != source
    (tmp_path / "without_barrier.hip").write_text(wrong)
    (tmp_path / "check.h").write_text((TESTBED / "check.h").read_text())
    ran = over_softkfd(hip_runtime, hip_program("without_barrier", hip_runtime, tmp_path), executor="emu")
    program = hip_program("without_barrier", hip_runtime, tmp_path)
    assert (ran.status, ran.stdout) == (1, "reduction wrong 1 of 1\n")
    ran = over_softkfd(hip_runtime, program, executor="emu", SOFTKFD_SANITIZE="1")
    assert (ran.status, ran.stdout) == (1, "")
    assert "lds-race in " in ran.stderr
