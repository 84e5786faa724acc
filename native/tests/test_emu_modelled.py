"""What the emulator models: issue slots against LLVM's scheduler, traffic against a recorded MI300X."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from rpl_testkit.requirements import require

from .emu_program import CORPUS, DEVICE
from .test_emu_opcodes import CASES

ITEMS = 1 << 20
#: docs/reference/counters.md, section 5, first dispatch on MI300X.
RECORDED = {"reads": 65779, "writes": 131072, "l2_hits": 66160, "l2_misses": 131328}
#: By each wave: with 20 in all what that MI300X had (SQ_INSTS 327680, 6 vector, 3 scalar, 4 loads, 1 branch).
EXECUTED = {
    "valu.int32": 2, "valu.compare": 1, "valu.int64": 3, "salu": 3, "smem": 4, "branch": 1,
    "global.read": 1, "global.write": 1, "internal": 4,
}  # fmt: skip


def _registers(letter: str, kind: str, first: int) -> str:
    words = {"x": 16, "y": 32}.get(letter) or int(letter)
    return f"{kind}{first}" if words == 1 else f"{kind}[{first}:{first + words - 1}]"


def _matrix_line(row: dict[str, str]) -> str:
    result, _, sources = row["signature"].partition(":")
    words = [_registers(result, "a", 0), _registers(sources[0], "v", 0), _registers(sources[1], "v", 8)]
    last = _registers("1", "v", 20) if len(sources) == 4 else words[0]
    return f"{row['opcode']} {', '.join([*words, last])}"


@pytest.fixture
def rows(emulator):
    listed = subprocess.run([emulator.program, "opcodes"], capture_output=True, text=True, check=True)
    return {row["opcode"]: row for row in json.loads(listed.stdout)}


#: By LLVM's names; a branch is LLVM's HWBranch, and so on.
UNITS = {
    "HWVALU": "vector",
    "HWXDL": "matrix",
    "HWSALU": "scalar",
    "HWLGKM": "lds_and_scalar_memory",
    "HWVMEM": "memory",
    "HWBranch": "branch",
}


def test_passes_are_those_of_llvms_scheduling_model(rows):
    lines = [_matrix_line(row) for row in rows.values() if row["class"].startswith("mfma.")]
    lines += [assembly for assembly, *_ in CASES]
    lines += [
        "ds_read_b128 v[0:3], v4",
        "global_load_dwordx4 v[0:3], v[2:3], off",
        "s_load_dword s0, s[2:3], 0",
    ]
    lines += ["buffer_load_dword v0, off, s[0:3], 0", "scratch_store_dword off, v0, off", "s_branch 0"]
    command = [
        require("llvm-mca-22"),
        "-mtriple=amdgcn",
        "-mcpu=gfx942",
        "--instruction-tables",
        "-iterations=1",
    ]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = re.findall(r"^\[\d+\] +- (\w+)$", done.stdout, re.M)
    found = re.split(r"Resource pressure by instruction:\n.*\n", done.stdout)[1].strip().splitlines()
    assert len(found) == len(lines)
    for assembly, line in zip(lines, found, strict=True):
        opcode = re.sub(r"_(e32|e64|sdwa|dpp)$", "", assembly.split()[0])
        taken = [0.0 if part == "-" else float(part) for part in line.split()[: len(names)]]
        by_unit = {UNITS[name]: passes for name, passes in zip(names, taken, strict=True) if passes}
        row = rows[opcode]
        # A vector instruction that writes scalar registers takes a slot of LLVM's scalar unit beside its own.
        assert by_unit.get(row["unit"]) == row["passes"], (assembly, by_unit)
        assert set(by_unit) <= {row["unit"], "scalar"}, (assembly, by_unit)


def _copy(emulator, examples, *options):
    buffers = [f"zeros:{8 * ITEMS}"] * 3
    ran = emulator.launch(
        examples,
        "copy_doubles",
        *buffers,
        f"i32:{ITEMS}",
        "i32:1",
        grid=str(ITEMS),
        block="256",
        options=options,
    )
    assert ran.status == 0, ran.stderr
    classes = ran.document["classes"]
    of_a_wave = {name: counts["executed"] / (ITEMS / 64) for name, counts in classes.items()}
    assert of_a_wave == EXECUTED
    return ran.document["modelled"]


def test_traffic_of_a_copy_is_that_of_a_recorded_mi300x(emulator, examples):
    modelled = _copy(emulator, examples, "--model-caches")
    traffic = modelled["traffic"]
    assert (traffic["l2"]["reads_128b"], traffic["l2"]["writes_64b"]) == (65536, 131072)
    assert traffic["fabric"]["writes_64b"] == RECORDED["writes"]
    assert traffic["fabric"]["reads_128b"] == pytest.approx(RECORDED["reads"], rel=0.01)
    assert traffic["l2"]["hits"] == pytest.approx(RECORDED["l2_hits"], rel=0.01)
    assert traffic["l2"]["misses"] == pytest.approx(RECORDED["l2_misses"], rel=0.01)
    # 8 MiB by 5324.8 GB/s; it took 16160 ns.
    assert modelled["bound_by"] == "hbm"
    assert modelled["bound_ns"] == pytest.approx(128 * traffic["hbm"]["reads_128b"] / 5324.8, rel=1e-6)


def test_without_the_model_of_caches_traffic_is_unknown(emulator, examples):
    modelled = _copy(emulator, examples)
    assert modelled["traffic"] is None
    assert "--model-caches" in modelled["traffic_reason"]
    # 3 scalar instructions and 4 loads of a wave, 16384 waves, 1216 SIMDs, 4 cycles each.
    assert modelled["issue_passes"]["scalar"] == 3 * 16384
    assert modelled["bounds_ns"]["issue.lds_and_scalar_memory"] == pytest.approx(4 * 16384 / 1216 * 4 / 2.1)
    assert modelled["bytes"] == 16 * ITEMS


def test_reuse_within_a_workgroup_hits_the_l1(emulator, examples):
    traffic = emulator.launch(
        examples, "softmax", "zeros:4000", "zeros:4000", "i32:1000", grid="256", block="256",
        options=("--model-caches",),
    ).document["modelled"]["traffic"]  # fmt: skip
    # A row of 4000 bytes is read three times: 32 lines, of which none is left after the first time round.
    assert traffic["l1"]["lines_128b_read"] - traffic["l1"]["hits"] == 32
    assert traffic["l2"]["reads_128b"] == 32


HBM_BYTES_PER_NS = 5324.8


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_saxpy_takes_the_bytes_that_it_streams_over_the_peak_of_hbm(emulator, compiled, threads):
    code = compiled("straight.hsaco", [require("clang++-22"), *DEVICE, "-O3", CORPUS / "straight.hip"])
    modelled = emulator.launch(
        code, "saxpy", f"zeros:{4 * ITEMS}", f"zeros:{4 * ITEMS}", grid=str(ITEMS), block="256",
        options=("--threads", threads),
    ).document["modelled"]  # fmt: skip
    distinct = modelled["distinct"]
    assert distinct["lines_64b_written"] == 4 * ITEMS // 64
    # Both vectors, and a line or two of arguments.
    assert 0 < distinct["lines_128b_read"] - 8 * ITEMS // 128 <= 4
    moved = 128 * distinct["lines_128b_read"] + 64 * distinct["lines_64b_written"]
    assert modelled["bound_by"] == "hbm"
    assert modelled["bound_ns"] == modelled["bounds_ns"]["hbm"] == pytest.approx(moved / HBM_BYTES_PER_NS)
    assert modelled["bound_ns"] >= 12e6 / 5300


def test_what_is_read_again_is_not_charged_again(emulator, examples):
    """A row of 4000 bytes, which each workgroup reads three times and writes once."""
    modelled = emulator.launch(
        examples, "softmax", "zeros:4000", "zeros:4000", "i32:1000", grid="256", block="256"
    ).document["modelled"]
    distinct = modelled["distinct"]
    assert modelled["lines_128b"] >= 4 * 32
    assert 32 <= distinct["lines_128b_read"] <= 36
    assert distinct["lines_64b_written"] == 63
