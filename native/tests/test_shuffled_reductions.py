"""Reductions whose last steps go from lane to lane, emulated: the bits that x86 leaves of the originals."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import rpl_testkit
from rpl_codeobject.reading import read_code_objects
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits
from rpl_testkit.requirements import require
from rpl_transforms.shuffles import ShuffledReductions

from .emu_program import CORPUS, DEVICE, cooperation_refusals, kernels_of

pytestmark = [pytest.mark.clang]

SOURCE = CORPUS / "reductions.hip"
GROUPS, SIZE = 3, 8 * 4096
#: Powers of two, waves that are not whole, halves that are odd, and less than a wave.
BLOCKS = (1024, 256, 64, 192, 200, 32)


def inputs() -> bytes:
    draw = np.random.default_rng(11)
    numbers = draw.normal(size=4096) * np.exp(draw.normal(size=4096) * 6)
    whole = draw.integers(0, 2**32, 4096, dtype=np.uint32)
    wide = draw.integers(-(2**63), 2**63, 4096, dtype=np.int64)
    return b"".join(one.tobytes() for one in (numbers.astype(np.float32), numbers, whole, wide))


@pytest.fixture(scope="module")
def headers():
    return Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"


@pytest.fixture(scope="module")
def edited(headers, tmp_path_factory):
    """The source with every offered edit."""
    text = SOURCE.read_bytes()
    words = (
        str(require("clang++-22")),
        "-x",
        "hip",
        "--offload-arch=gfx942",
        "-nogpuinc",
        "-nogpulib",
        "-O3",
    )
    front_end = FrontEnd((*words, "-I", str(headers)), SOURCE, SOURCE, CORPUS)
    offered = ShuffledReductions().propose(
        KernelSource(str(SOURCE), text, reading=CompilerReading(front_end, text))
    )
    assert [(one.id, one.guards) for one in offered if not one.allowed] == []
    assert len(offered) == text.count(b"s = ") - text.count(b"s = s /"), "one for each loop"
    place = tmp_path_factory.mktemp("edited") / "reductions.hip"
    place.write_bytes(apply_edits(text, [edit for one in offered for edit in one.edits]))
    return place


@pytest.fixture
def code(compiled, headers, edited):
    def built(name, source, *options):
        command = [require("clang++-22"), *DEVICE, "-O3", f"-I{headers}", f"-I{CORPUS}", *options]
        return compiled(f"{name}.hsaco", [*command, source])

    return built("reductions", SOURCE), built("reductions-shuffled", edited)


@pytest.fixture
def on_cpu(compiled):
    command = [require("clang++-22"), "-std=c++20", "-O1", "-shared", "-fPIC", "-w", "-ffp-contract=off"]
    sources = [CORPUS / "run_on_cpu.cpp", "-x", "c++", SOURCE]
    library = ctypes.CDLL(str(compiled("reductions.so", [*command, *sources])))
    given = inputs()

    def run(kernel, block, n):
        out = ctypes.create_string_buffer(SIZE)
        library.corpus_run(getattr(library, kernel), given, out, n, GROUPS, block)
        return out.raw

    return run


def _launch(emulator, code, kernel, block, n, name, *options):
    result = emulator.output(name)
    ran = emulator.launch(
        code,
        kernel,
        emulator.file("in.bin", inputs()),
        f"zeros:{SIZE},out={result}",
        f"i32:{n}",
        grid=str(GROUPS * block) if isinstance(block, int) else f"{GROUPS * block[0]},{block[1]}",
        block=str(block) if isinstance(block, int) else f"{block[0]},{block[1]}",
        options=("--timeout", "100", "--lds", "8192", *options),
    )
    assert ran.status == 0, (kernel, block, ran.stderr)
    return result.read_bytes(), ran.document


def test_the_edit_leaves_the_bits_of_the_original_on_x86(emulator, code, on_cpu):
    """For sizes of blocks that take the new way and for those that don't."""
    kernels = kernels_of(code[0])
    assert kernels == kernels_of(code[1])
    for kernel in kernels:
        for block in BLOCKS:
            for n in (256, 100) if kernel == "by_size" else (0,):
                if block < 256 and kernel in {"constant", "by_size"}:
                    continue  # they reduce more elements than such a block has
                told, _ = _launch(emulator, code[1], kernel, block, n, "new.bin")
                assert told == on_cpu(kernel, block, n), (kernel, block, n)


def test_the_comparison_notices_one_wrong_lane(emulator, compiled, headers, edited, on_cpu, tmp_path):
    text = edited.read_bytes()
    wrong = text.replace(b"rpl_by = rpl_wave / 2", b"rpl_by = rpl_wave / 4")
    assert wrong != text
    place = tmp_path / "wrong.hip"
    place.write_bytes(wrong)
    command = [require("clang++-22"), *DEVICE, "-O3", f"-I{headers}", f"-I{CORPUS}"]
    code = compiled("reductions-wrong.hsaco", [*command, place])
    for kernel in kernels_of(code):
        told, _ = _launch(emulator, code, kernel, 256, 256, "wrong.bin")
        assert told != on_cpu(kernel, 256, 256), kernel


def test_fewer_barriers_and_accesses_of_shared_memory_are_executed(emulator, code):
    """Of a block of 256: the last six of eight steps have one barrier, and one load and store per lane."""

    def executed(number, kernel, *names):
        _, document = _launch(emulator, code[number], kernel, 256, 0, "counted.bin", "--sanitize")
        assert not document.get("findings"), (kernel, document["findings"])
        told = document["opcodes"]
        return [sum(one["executed"] for name, one in told.items() if name.startswith(word)) for word in names]

    for kernel in ("sum", "sum_of_ints", "larger"):
        (waits, reads, writes, hands), (fewer, read, written, handed) = (
            executed(number, kernel, "s_barrier", "ds_read", "ds_write", "ds_bpermute") for number in (0, 1)
        )
        waves = 4 * GROUPS
        assert (waits - fewer, hands, handed) == (5 * waves, 0, 6 * GROUPS), kernel
        assert read < reads, kernel
        assert written == writes - 5 * GROUPS, kernel


def test_blocks_of_several_rows_go_on_as_before(emulator, code):
    for block in ((32, 4), (64, 2), (128, 1)):
        (old, told), (new, counted) = (
            _launch(emulator, code[number], "rows", block, 0, "rows.bin") for number in (0, 1)
        )
        assert old == new
        assert ("ds_bpermute_b32" in counted["opcodes"]) == (block[1] == 1)
        waits = [one["opcodes"]["s_barrier"]["executed"] for one in (told, counted)]
        assert (waits[0] == waits[1]) == (block[1] > 1)


def test_the_build_hands_over_what_was_declared(code):
    """The kernel's own code for a candidate hands nothing over, whatever is declared."""
    old, new = (read_code_objects(one) for one in code)

    for kernel in ("sum", "constant", "difference", "general", "twice"):
        assert cooperation_refusals(old, new, kernel, exchanged=2 if kernel == "twice" else 1) == []
        assert "no more than before do" in cooperation_refusals(old, old, kernel, exchanged=1)[0]
