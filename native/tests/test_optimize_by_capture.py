"""``rpl optimize --capture``: candidates are judged by one captured launch, and by nothing else."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from rpl_testkit.fixtures import CommandLine

pytestmark = [pytest.mark.clang, pytest.mark.long, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "optimize" / "smooth.hip"
SMOOTH = "smooth(float const*, float const*, float*, int, int)"
COUNT, TAPS, BLOCK = 1000, 64, 256
SIGNAL, WEIGHTS, RESULT, ARGUMENTS = (0x4801400000 + step * 0x10000 for step in range(4))
LOOP = "    for (int k = 0; k < taps; ++k) {\n"
#: By ROCr 6.1.
READABLE = ("-Xarch_device", "-mcode-object-version=5")
CANDIDATES = [
    {"find": "k < taps; ++k) {", "replace": "k < taps - 1; ++k) {", "summary": "wrong results"},
    {
        "find": "k < taps; ++k) {",
        "replace": "k < (taps == 64 ? taps : taps - 1); ++k) {",
        "summary": "wrong for inputs that were not captured",
    },
    {"find": LOOP, "replace": f"#pragma unroll 4\n{LOOP}", "summary": "faster"},
]


def _arguments() -> bytes:
    """The kernel's own, then the compiler's: how many workgroups, of which size, and the rest."""
    blocks = -(-COUNT // BLOCK)
    own = struct.pack("<QQQii", SIGNAL, WEIGHTS, RESULT, COUNT, TAPS)
    hidden = struct.pack("<IIIHHHHHH", blocks, 1, 1, BLOCK, 1, 1, 0, 0, 0)
    return (own + hidden).ljust(32 + 256, b"\0")


@pytest.fixture
def smooth_capture(tmp_path):
    """``smooth_capture(program)``: of its first kernel, as the first rocm-perf-lab writes captures."""
    from rpl_codeobject.reading import read_code_objects

    def write(program):
        folder = tmp_path / "isolate_capture"
        (folder / "memory").mkdir(parents=True)
        draw = np.random.default_rng(7)
        contents = {
            SIGNAL: draw.normal(size=COUNT + TAPS).astype(np.float32).tobytes(),
            WEIGHTS: draw.normal(size=TAPS).astype(np.float32).tobytes(),
            RESULT: bytes(4 * COUNT),
        }
        regions = []
        for base, content in contents.items():
            (folder / "memory" / f"region_{base:x}.bin").write_bytes(content)
            kinds = {"is_pool": True, "is_vmem": False, "contains_kernarg": False, "handle": 0, "access": 0}
            regions.append({"base": base, "size": len(content), **kinds})
        (code,) = (one for one in read_code_objects(program) if one.architecture == "gfx942")
        launch = {
            "mangled_name": "_Z6smoothPKfS0_Pfii.kd", "demangled_name": SMOOTH, "agent_name": "gfx942",
            "isa_name": "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "wavefront_size": 64,
            "kernel_object": 0, "grid": [1024, 1, 1], "block": [BLOCK, 1, 1], "group_segment_size": 0,
            "private_segment_size": 0, "kernarg_size": len(_arguments()), "dispatch_index": 0,
        }  # fmt: skip
        (folder / "dispatch.json").write_text(json.dumps(launch))
        (folder / "memory_regions.json").write_text(json.dumps({"regions": regions}))
        (folder / "kernarg.bin").write_bytes(_arguments())
        (folder / "kernel.hsaco").write_bytes(code.elf)
        return folder

    return write


def test_candidates_are_judged_by_the_captured_launch(
    rpl_closed_loop_bench, smooth_capture, monkeypatch, native_build, emulator, hsa_runtime
):
    del emulator  # says what is missing
    bench = rpl_closed_loop_bench
    source = Path(shutil.copy(EXAMPLE, bench.folder))
    capture = smooth_capture(bench.build(source, *READABLE))
    kernels = [{"name": SMOOTH, "nominal_ns": 800_000, "launches": 10}]
    bench.declare(kernels, [{"source_matches": r"unroll 4\b", "kernel": SMOOTH, "factor": 0.8}], cv=0.005)
    bench.script([{"kernel": "smooth", **one} for one in CANDIDATES])
    monkeypatch.setenv("RPL_ALLOW_SYNTHETIC_GATES", "1")
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    launcher = native_build / "native" / "softkfd" / "softkfd-run"
    monkeypatch.setenv("RPL_NATIVE_FOLDER", str(native_build))
    monkeypatch.setenv("RPL_REPLAY_LAUNCHER", f"{launcher} --executor emu --runtime {hsa_runtime}")
    session = bench.folder / "session"
    words = [
        "--proposer",
        "scripted",
        "--auto-approve",
        "--runs",
        "2",
        "--device",
        "gfx942",
        "--max-iters",
        "3",
    ]
    build = ["hipcc", "-O3", "-g", "--offload-arch=gfx942", *READABLE, "{source}", "-o", "{output}"]
    words += ["--build", " ".join(build)]
    words += ["--output", str(session), "--capture", str(capture), "./smooth", "64", "1"]
    ran = CommandLine(monkeypatch)(
        "-p", "rpl_testkit.scripted_proposer", "optimize", *words, cwd=bench.folder
    )
    found = {
        one["summary"]: one["judgement"]
        for one in json.loads((session / "optimize.json").read_text())["candidates"]
    }
    assert found["wrong results"]["stage"] == "equivalence", ran.stderr
    assert "differ beyond the tolerance" in found["wrong results"]["reason"]
    assert found["faster"]["verdict"] == "accepted", (found, ran.stderr)
    (elsewhere,) = (one for summary, one in found.items() if "not captured" in summary)
    assert (elsewhere["verdict"], elsewhere["stage"]) == ("rejected", "equivalence"), ran.stderr
    assert elsewhere["reason"].startswith("varied-inputs: "), elsewhere
    by_candidate = {
        one["data"]["candidate"]: {check["check"]: check for check in one["data"]["checks"]}
        for one in map(json.loads, (session / "ledger.jsonl").read_text().splitlines())
        if one["event"] == "equivalence_checked"
    }
    # On the captured input the second one is right; on others it is not. The last one is on all of them.
    assert by_candidate[2]["captured-launch"]["verdict"] == "equal", by_candidate[2]
    assert by_candidate[2]["varied-inputs"]["verdict"] == "different"
    assert by_candidate[3]["varied-inputs"]["verdict"] == "equal", by_candidate[3]
    checks = [
        json.loads(line)
        for line in (session / "ledger.jsonl").read_text().splitlines()
        if "captured-launch" in line
    ]
    assert any("wrong kernels noticed" in json.dumps(one) for one in checks)
    (alone,) = [
        json.loads(line)["data"]["measurement"]
        for line in (session / "ledger.jsonl").read_text().splitlines()
        if json.loads(line)["event"] == "timed_alone"
    ]
    # Both kernels took turns on the capture; times of no GPU decide nothing.
    assert (alone["origin"], alone["problem"]) == ("synthetic", None), alone
    assert len(alone["base_ns"]) >= 3
