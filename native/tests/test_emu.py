"""The emulator as users meet it: results against numpy, and a clear end for each thing that goes wrong."""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
from collections import Counter

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from rpl_testkit.hand_made_code import END_PROGRAM, CodeParts, metadata_note
from rpl_testkit.requirements import require

from .emu_program import DEVICE, STATUSES


def _result(emulator, name, type_):
    return np.fromfile(emulator.output(name), type_)


def test_softmax(emulator, examples):
    x = np.random.default_rng(1).normal(size=(8, 1000)).astype(np.float32) * 4
    ran = emulator.launch(
        examples,
        "softmax",
        emulator.file("x", x),
        f"zeros:{x.nbytes},out={emulator.output('y')}",
        "i32:1000",
        grid="2048",
        block="256",
    )
    assert ran.status == 0, ran.stderr
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    assert (
        np.abs(_result(emulator, "y", np.float32).reshape(8, 1000) - e / e.sum(1, keepdims=True)).max() < 1e-6
    )


@pytest.mark.parametrize("threads", ["1", "2"])
def test_tiled_gemm(emulator, examples, threads):
    r = np.random.default_rng(2)
    a, b = (r.normal(size=(64, 64)).astype(np.float32) for _ in "ab")
    ran = emulator.launch(
        examples,
        "gemm",
        emulator.file("a", a),
        emulator.file("b", b),
        f"zeros:{a.nbytes},out={emulator.output('c')}",
        "i32:64",
        grid="1024,4",
        block="256",
        options=("--threads", threads),
    )
    assert ran.status == 0, ran.stderr
    assert np.abs(_result(emulator, "c", np.float32).reshape(64, 64) - a.astype(float) @ b).max() < 1e-4
    # 64 work-items a wave, 4 waves a workgroup, 16 workgroups; 4 tiles, each loaded twice.
    assert ran.document["waves"] == 64
    assert ran.document["classes"]["global.read"] == ran.document["classes"]["global.read"] | {
        "executed": 64 * 4 * 2
    }
    assert ran.document["classes"]["global.read"]["bytes"] == 16 * 256 * 4 * 2 * 4


def test_reduction_and_histogram_with_atomics(emulator, examples):
    x = np.random.default_rng(3).integers(0, 256, 5000)
    ran = emulator.launch(
        examples,
        "reduction",
        emulator.file("x", x.astype(np.float32)),
        f"zeros:4,out={emulator.output('s')}",
        "i32:5000",
        grid="1024",
        block="256",
    )
    assert ran.status == 0, ran.stderr
    assert _result(emulator, "s", np.float32)[0] == x.sum()
    ran = emulator.launch(
        examples,
        "histogram",
        emulator.file("x", x.astype(np.uint8)),
        f"zeros:1024,out={emulator.output('h')}",
        "i32:5000",
        grid="1024",
        block="256",
    )
    assert ran.status == 0, ran.stderr
    assert (_result(emulator, "h", np.uint32) == np.bincount(x, minlength=256)).all()


def test_mfma_gemm(emulator, examples):
    r = np.random.default_rng(4)
    a, b = (r.normal(size=(64, 64)).astype(np.float16) for _ in "ab")
    ran = emulator.launch(
        examples,
        "mfma_gemm",
        emulator.file("a", a),
        emulator.file("b", b.T),
        f"zeros:{64 * 64 * 4},out={emulator.output('c')}",
        "i32:64",
        grid="256,4",
    )
    assert ran.status == 0, ran.stderr
    assert (
        np.abs(_result(emulator, "c", np.float32).reshape(64, 64) - a.astype(float) @ b.astype(float)).max()
        < 1e-4
    )
    assert ran.document["classes"]["mfma.f16"]["executed"] == 16 * 4


def test_workgroups_that_wait_for_each_other_end(emulator, examples):
    ran = emulator.launch(
        examples,
        "grid_barrier",
        "zeros:4",
        f"zeros:400,out={emulator.output('o')}",
        "u32:100",
        grid="6400",
        options=("--timeout", "60"),
    )
    assert ran.status == 0, ran.stderr
    assert (_result(emulator, "o", np.uint32) == 100).all()


def test_all_waves_meet_by_the_barrier_of_the_gpu(emulator, examples):
    ran = emulator.launch(
        examples,
        "gws_barrier",
        "zeros:8",
        f"zeros:800,out={emulator.output('o')}",
        "u32:100",
        grid="6400",
        options=("--timeout", "60"),
    )
    assert ran.status == 0, ran.stderr
    assert _result(emulator, "o", np.uint32).tolist() == [100] * 100 + [200] * 100
    assert ran.document["opcodes"]["ds_gws_barrier"]["executed"] == 400  # waiting counts no more


def test_a_kernel_changes_its_direction_of_rounding(emulator, examples):
    given = ("f32:1", "f32:2.98023223876953125e-8", "f64:1", "f64:1.1102230246251565e-16")
    outputs = [f"zeros:{8 * 4},out={emulator.output(name)}" for name in ("sums", "twice")]
    ran = emulator.launch(examples, "directions", *given, *outputs)
    assert ran.status == 0, ran.stderr
    up = float(np.nextafter(np.float32(1), np.float32(2)))
    assert _result(emulator, "sums", np.float32)[:4].tolist() == [up, 1, 1, 1]
    assert _result(emulator, "twice", np.float64)[0] == 1


def test_what_is_not_offered_is_refused_where_it_is_reached(emulator, examples):
    ran = emulator.launch(examples, "seldom", f"zeros:256,out={emulator.output('o')}", "i32:0")
    assert ran.status == 0, ran.stderr
    assert (_result(emulator, "o", np.uint32) == 7).all()
    reached = emulator.launch(examples, "seldom", "zeros:256", "i32:1")
    assert (reached.status, reached.document["outcome"]) == (69, "not_offered")
    assert re.search(
        r"unknown instruction: v_cvt_pkaccum_u8_f32 .*workgroup \(0, 0, 0\), wave 0, at", reached.stderr
    )
    before = emulator.launch(examples, "seldom", "zeros:256", "i32:0", options=("--strict-decode",))
    assert (before.status, before.document) == (69, {})
    assert "unknown instruction: v_cvt_pkaccum_u8_f32" in before.stderr


def test_each_way_to_fail_has_its_own_end(emulator, examples):
    ran = emulator.launch(examples, "no_such_instruction", "zeros:4")
    assert ran.status == 69
    assert re.search(r"s_sendmsg.*, workgroup \(0, 0, 0\), wave 0, at 0x", ran.stderr)
    ran = emulator.launch(examples, "wild", "zeros:4")
    assert ran.status == 4
    assert re.search(
        r"store outside of mapped memory: address 0x\w+, lane 1, workgroup \(0, 0, 0\), wave 0, at 0x\w+",
        ran.stderr,
    )
    ran = emulator.launch(examples, "endless", "zeros:4", options=("--max-instructions", "100000"))
    assert ran.status == 124
    assert "limit of instructions" in ran.stderr
    assert emulator.launch(examples, "endless", "zeros:4", options=("--timeout", "0.2")).status == 124
    assert emulator.launch(examples, "none", "zeros:4").status == 64
    (emulator.folder / "text").write_text("no code object")
    assert emulator.launch(emulator.folder / "text", "none").status == 65
    ran = emulator.launch(examples, "wild", "zeros:4", options=("--llvm", "/no/such/lib.so"))
    assert ran.status == 69
    assert "Next:" in ran.stderr


def test_many_workgroups_in_flight_overrun_a_limit_by_one_of_their_turns(emulator, examples):
    options = ("--max-instructions", "60000")
    ran = emulator.launch(examples, "endless", "zeros:4", grid="4096", block="64", options=options)
    assert ran.status == 124
    assert 60_000 < ran.document["instructions"] <= 60_000 + 16_384


def test_sanitize_names_both_places(emulator, examples):
    ran = emulator.launch(examples, "race", "zeros:512", grid="128", block="128", options=("--sanitize",))
    assert ran.status == 1
    finding = ran.document["findings"][0]
    assert finding["kind"] == "lds-race"
    assert finding["at"] != finding["other"]
    assert {finding["wave"], finding["other_wave"]} == {0, 1}
    for kernel, kind, grid in (
        ("unwritten", "lds-unwritten", "128"),
        ("between_groups", "memory-race-between-workgroups", "256"),
    ):
        ran = emulator.launch(
            examples,
            kernel,
            "zeros:512",
            grid=grid,
            block="128" if kernel == "unwritten" else "64",
            options=("--sanitize",),
        )
        assert ran.status == 1
        assert {f["kind"] for f in ran.document["findings"]} == {kind}
    ran = emulator.launch(examples, "no_race", "zeros:512", grid="128", block="128", options=("--sanitize",))
    assert (ran.status, ran.document["findings"]) == (0, [])


@pytest.mark.parametrize(
    ("kernel", "kind", "at", "other"),
    [
        ("unwritten_register", "register-unwritten", "global_store_dword", "v_add_u32"),
        ("partly_written_register", "register-unwritten", "global_store_dword", "v_add_u32"),
        ("unwritten_scalar", "scalar-register-unwritten", "s_cbranch_scc0", "s_add_u32"),
        ("garbage_in_lds", "lds-unwritten", "flat_load_dword", "flat_load_dword"),
        ("barrier_of_some_lanes", "barrier-partial-exec", "s_barrier", "s_barrier"),
        ("different_barriers", "barrier-different", "s_barrier", "s_barrier"),
        ("unused_garbage", None, None, None),
    ],
)
def test_sanitize_finds_garbage_and_barriers_that_do_not_fit(emulator, examples, kernel, kind, at, other):
    block = "128" if "barrier" in kernel else "64"
    ran = emulator.launch(examples, kernel, "zeros:512", grid=block, block=block, options=("--sanitize",))
    assert ran.document["outcome"] == "ended", ran.stderr
    found = ran.document["findings"]
    assert {finding["kind"] for finding in found} == ({kind} if kind else set())
    if kind:
        assert ran.status == 1
        assert at in found[0]["at"]
        assert other in found[0]["other"]
    if kernel == "different_barriers":
        assert found[0]["at"] != found[0]["other"]
    if kernel == "partly_written_register":
        assert found[0]["lane"] == 32


@pytest.mark.parametrize("kernel", ["unwritten_register", "garbage_in_lds"])
def test_what_nobody_wrote_is_garbage_by_the_seed(emulator, examples, kernel):
    def run(seed):
        buffer = f"zeros:256,out={emulator.output('o')}"
        assert emulator.launch(examples, kernel, buffer, options=("--seed", seed)).status == 0
        return emulator.output("o").read_bytes()

    first = run("1")
    assert first != bytes(256)
    assert run("1") == first
    assert run("2") != first


@pytest.mark.parametrize("axes", ["x", "xy", "xyz", "z"])
def test_the_place_in_the_workgroup_holds_the_axes_that_are_asked_for(emulator, compiled, tmp_path, axes):
    """Where no y is asked for, the compiler takes all of v0 for x."""
    place = " + ".join(f"__builtin_amdgcn_workitem_id_{axis}() * {10 ** 'xyz'.index(axis)}" for axis in axes)
    source = tmp_path / "axes.hip"
    source.write_text(
        f"""extern "C" __attribute__((global)) void count(unsigned* seen) {{
  __atomic_fetch_add(&seen[{place}], 1u, __ATOMIC_RELAXED);
}}"""
    )
    x, y, z = 3, 4, 5
    code = compiled(f"axes_{axes}.hsaco", [require("clang++-22"), *DEVICE, "-O3", source])
    ran = emulator.launch(
        code, "count", f"zeros:4000,out={emulator.output('s')}", grid="3,4,5", block="3,4,5"
    )
    assert ran.status == 0, ran.stderr
    expected = Counter(
        sum((i, j, k)["xyz".index(axis)] * 10 ** "xyz".index(axis) for axis in axes)
        for i in range(x)
        for j in range(y)
        for k in range(z)
    )
    seen = _result(emulator, "s", np.uint32)
    assert {int(n): int(seen[n]) for n in np.flatnonzero(seen)} == expected


def test_preloaded_arguments_are_in_their_registers(emulator, compiled, tmp_path):
    source = tmp_path / "preload.hip"
    source.write_text(
        """extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 64)))
        void preload(int a, int* out, short b, double c, int d) {
          out[__builtin_amdgcn_workitem_id_x()] = a + b * 10 + int(c) * 100 + d * 1000;
        }"""
    )
    command = [require("clang++-22"), *DEVICE, "-O3", source, "-mllvm", "-amdgpu-kernarg-preload-count=16"]
    code = compiled("preload.hsaco", command)
    # AMDGPUUsage, kernel descriptor: the length lies in the lowest bits of byte 58.
    assert _section(code, ".rodata")[58] & 127 >= 8
    result = f"zeros:256,out={emulator.output('o')}"
    ran = emulator.launch(code, "preload", "i32:1", result, "i16:2", "f64:3", "i32:4")
    assert ran.status == 0, ran.stderr
    assert (_result(emulator, "o", np.int32) == 4321).all()


@pytest.mark.parametrize(
    ("kernel", "arguments", "grid"),
    [
        ("gemm", ("zeros:16384", "zeros:16384", "zeros:16384", "i32:64"), "1024,4"),
        ("histogram", ("zeros:4096", "zeros:1024", "i32:4000"), "2048"),
        ("grid_barrier", ("zeros:4", "zeros:400", "u32:100"), "6400"),
        ("wild", ("zeros:4",), "64"),
    ],
)
def test_straight_runs_count_what_single_instructions_count(emulator, examples, kernel, arguments, grid):
    def places(*options):
        block = "256" if kernel in {"gemm", "histogram"} else "64"
        ran = emulator.launch(
            examples, kernel, *arguments, grid=grid, block=block, options=("--places", *options)
        )
        return ran.document["places"], ran.document["classes"], ran.document["outcome"]

    assert places() == places("--sanitize")  # which looks at each instruction


def test_the_clock_counts_instructions(emulator, examples):
    ran = emulator.launch(examples, "clock", f"zeros:512,out={emulator.output('t')}")
    assert ran.status == 0, ran.stderr
    assert (_result(emulator, "t", np.uint64) == 4).all()


def _section(code, name):
    command = [require("llvm-readelf-22"), "-x", name, code]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^0x\w+ ((?:[0-9a-f]{2,8} )+)", listed, re.M)
    return bytes.fromhex("".join(lines).replace(" ", ""))


@pytest.mark.parametrize("cpu", ["baseline", "avx2"])
def test_every_build_gives_the_same_bytes(emulator, examples, cpu):
    x = np.random.default_rng(5).normal(size=(4, 500)).astype(np.float32)
    found = []
    for options in ((), ("--cpu", cpu)):
        ran = emulator.launch(
            examples,
            "softmax",
            emulator.file("x", x),
            f"zeros:{x.nbytes},out={emulator.output('y')}",
            "i32:500",
            grid="1024",
            block="256",
            options=options,
        )
        if ran.status == 69 and options:
            pytest.skip(ran.stderr)
        found.append((emulator.output("y").read_bytes(), ran.document["opcodes"]))
    assert found[0] == found[1]


def _lines_of(command, code):
    request = len(code).to_bytes(8, "little")
    done = subprocess.run(command, input=bytes(8) + request + code, capture_output=True)
    assert done.returncode == 0, done.stderr
    version, *lines = done.stdout.decode().splitlines()
    return version, lines


def _as_number(text):
    """Newer ones write a literal as ``lit(0xffffffff)`` where older ones write ``-1``."""
    literal = re.sub(r"lit\((0x[0-9a-f]+)\)", r"\1", text)
    return re.sub(r"(?<=[ ,-])-?(0x[0-9a-f]+|\d+)\b", lambda m: hex(int(m[0], 0) & 0xFFFFFFFF), literal)


def test_comgr_decodes_what_llvm_decodes(emulator, examples, hip_runtime):
    """The comgr of Debian 13's ROCm is linked to LLVM 17, and taken as comgr all the same."""
    folder = hip_runtime / "usr" / "lib" / "x86_64-linux-gnu"
    with examples.open("rb") as file:
        code = ELFFile(file).get_section_by_name(".text").data()
    command = [emulator.program, "disassemble"]
    loader = [folder / "ld-linux-x86-64.so.2", "--library-path", folder]
    (library,) = folder.glob("libamd_comgr.so.?")
    version, lines = _lines_of(command, code)
    other, others = _lines_of([*loader, *command, "--llvm", library], code)
    assert (version[:4], other[:5]) == ("LLVM", "comgr")
    assert len(lines) > 1000
    assert [_as_number(line) for line in lines] == [_as_number(line) for line in others]


@pytest.mark.parametrize(
    "broken",
    [
        (0xD100000D, 0x000902FF),  # v_cndmask_b32_e64 with a literal, which gfx942 has not behind 8 bytes
        (0x7E0202FF,),  # v_mov_b32 whose literal is behind the end of the code
        (0x5C880EF9, 0xD2030FFE),  # SDWA with a reserved selection
    ],
)
def test_bytes_on_which_llvm_crashes_are_no_instruction(emulator, broken):
    """LLVM 22.1 does, and llvm-objdump of it too."""
    code = struct.pack(f"<I{len(broken)}I", 0xBF800000, *broken)
    _, lines = _lines_of([emulator.program, "disassemble"], code)
    assert lines[0].split() == ["4", "s_nop", "0"]
    assert lines[1].split() == ["0"]


@pytest.mark.parametrize(
    "parts",
    [
        CodeParts(notes=5000, note=metadata_note(b"\xdc\x40\x00" + b"\xc0" * 16_384)),
        CodeParts(loads=60_000, relocations=50_000),
        CodeParts(functions=50_000, name=b"n" * 100_000),
        CodeParts(functions=20_000, text=END_PROGRAM * 20_000),
    ],
    ids=["notes", "segments", "names", "functions"],
)
def test_parts_that_overlap_again_and_again_are_refused(emulator, parts):
    """Minutes or gigabytes each, where every one of them is read."""
    path = emulator.folder / "overlapping.hsaco"
    path.write_bytes(parts.build())
    limits = ["prlimit", "--cpu=20", *(["--as=2000000000"] if "RPL_TEST_EMULATOR" not in os.environ else [])]
    done = subprocess.run([*limits, emulator.program, "decode", path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr == "rpl-emu: a code object whose parts overlap again and again\n"


def test_what_is_no_regular_file_is_not_read(emulator):
    """A device without an end, and a pipe without another end."""
    pipe = emulator.folder / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/zero", pipe, emulator.folder):
        ran = emulator.launch(path, "k")
        assert (ran.status, "no regular file" in ran.stderr) == (65, True)


def _places(code):
    """Where a change can matter: the whole file, its headers, and each section that the loader reads."""
    with code.open("rb") as file:
        sections = [s for s in ELFFile(file).iter_sections() if s["sh_type"] != "SHT_NULL" and s.data_size]
        ends = [(s["sh_offset"], s["sh_offset"] + s.data_size) for s in sections]
    size = code.stat().st_size
    return [(0, size), (0, 512), *((low, high) for low, high in ends if high <= size)]


def _damaged(whole, places, r):
    damaged = bytearray(whole)
    low, high = r.choice(places)
    for _ in range(r.choice([1, 1, 2, 8, 64])):
        damaged[r.randrange(low, high)] = r.choice(
            [0, 1, 0x7F, 0x80, 0xFF, r.randrange(256), r.randrange(256)]
        )
    if r.random() < 0.1:
        del damaged[r.randrange(len(damaged)) :]
    return bytes(damaged)


def _fuzz(emulator, examples, rounds, seed):
    r = random.Random(seed)
    whole, places, ended = examples.read_bytes(), _places(examples), Counter()
    path = emulator.folder / "damaged.hsaco"
    limits = ["--timeout", "20", "--max-instructions", "300000"]
    if "RPL_TEST_EMULATOR" not in os.environ:  # sanitizers need more addresses than any limit leaves
        limits += ["--memory-limit", str(1 << 34)]
    for _ in range(rounds):
        path.write_bytes(_damaged(whole, places, r))
        kernel = r.choice(["softmax", "gemm", "histogram", "mfma_gemm"])
        buffers = ["zeros:4096", "zeros:4096", *(["zeros:16384"] if "gemm" in kernel else [])]
        checks = r.choice([["--sanitize"], ["--model-caches"], []])
        options = (*limits, *checks)
        ran = emulator.launch(path, kernel, *buffers, "i32:16", grid="256", block="64", options=options)
        expected = STATUSES if "--sanitize" in checks else STATUSES - {1}
        assert ran.status in expected, (seed, ran.status, ran.stderr)
        ended[ran.status] += 1
    print(f"seed {seed}: {rounds} code objects, how they ended: {dict(sorted(ended.items()))}")


@pytest.mark.fuzz
def test_damaged_code_objects_never_crash_it(emulator, examples):
    _fuzz(emulator, examples, 200, 1)


@pytest.mark.long
@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_damaged_code_objects_never_crash_it(emulator, examples, seed):
    _fuzz(emulator, examples, 500, seed)
