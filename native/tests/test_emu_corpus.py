"""The emulator against the same source compiled for x86, byte for byte; matrix operations against numpy."""

from __future__ import annotations

import ctypes
from collections import Counter

import numpy as np
import pytest

from rpl_testkit.requirements import require

from .emu_corpus.matrix_kernels import shapes, source
from .emu_corpus.matrix_reference import matrix_case
from .emu_corpus.numbers import inputs, start_of_output
from .emu_program import CORPUS, DEVICE, kernels_of

FILES = ("plain", "wider", "together")
GRID, BLOCK, ITEMS = 1280, 256, 1000
LEAST_KERNELS = 150


@pytest.fixture(scope="session")
def on_cpu(compiled):
    """``on_cpu("kernel")``: the bytes that it leaves, by clang for x86."""
    command = [require("clang++-22"), "-std=c++20", "-O1", "-march=x86-64-v3", "-shared", "-fPIC", "-w"]
    same = ["-ffp-contract=off", "-Xclang", "-ffloat16-excess-precision=none"]
    library = ctypes.CDLL(str(compiled("corpus.so", [*command, *same, *sorted(CORPUS.glob("*.cpp"))])))
    given = inputs()

    def run(kernel: str) -> bytes:
        out = ctypes.create_string_buffer(start_of_output(), len(start_of_output()))
        library.corpus_run(getattr(library, kernel), given, out, ITEMS, GRID // BLOCK, BLOCK)
        return out.raw

    return run


def _check_level(level, emulator, compiled, on_cpu):
    given, start = emulator.file("in.bin", inputs()), emulator.file("start.bin", start_of_output())
    counts: Counter[str] = Counter()
    kernels = 0
    wrong = []
    for name in FILES:
        code = compiled(
            f"{name}-{level}.hsaco", [require("clang++-22"), *DEVICE, f"-{level}", CORPUS / f"{name}.cpp"]
        )
        for kernel in kernels_of(code):
            result = emulator.output("result.bin")
            ran = emulator.launch(
                code,
                kernel,
                given,
                f"{start},out={result}",
                f"i32:{ITEMS}",
                grid=str(GRID),
                block=str(BLOCK),
                options=("--timeout", "100"),
            )
            kernels += 1
            if ran.status != 0:
                wrong.append((kernel, ran.stderr))
            elif result.read_bytes() != on_cpu(kernel):
                wrong.append((kernel, "other bytes than on x86"))
            for opcode, count in ran.document.get("opcodes", {}).items():
                counts[opcode] += count["executed"]
    print(f"-{level}: {kernels} kernels, {len(counts)} opcodes executed")
    for opcode, count in sorted(counts.items()):
        print(f"  {opcode} {count}")
    assert wrong == []
    assert kernels >= LEAST_KERNELS


def test_the_corpus_gives_the_bytes_of_x86(emulator, compiled, on_cpu):
    _check_level("O3", emulator, compiled, on_cpu)


@pytest.mark.long
@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_every_level_of_optimisation_gives_the_bytes_of_x86(level, emulator, compiled, on_cpu):
    _check_level(level, emulator, compiled, on_cpu)


def test_every_matrix_operation_of_gfx942_agrees_with_exact_products(emulator, compiled, tmp_path):
    text = tmp_path / "matrix.hip"
    text.write_text(source())
    code = compiled("matrix.hsaco", [require("clang++-22"), *DEVICE, "-O2", text])
    wrong = []
    for name, _, _, _, kinds, sparse in shapes():
        case = matrix_case(name, kinds, sparse, seed=3)
        files = [
            emulator.file(f"{k}.bin", v)
            for k, v in zip("abcx", (case.a, case.b, case.c, case.index), strict=True)
        ]
        result = emulator.output("d.bin")
        ran = emulator.launch(code, name, *files, f"zeros:{case.c.nbytes},out={result}")
        if ran.status != 0:
            wrong.append((name, ran.stderr))
            continue
        d = np.fromfile(result, case.c.dtype).reshape(case.d.shape)
        if not (np.abs(d - case.d) <= case.tolerance).all():
            wrong.append((name, float(np.abs(d - case.d).max())))
    assert wrong == []
    assert len(shapes()) == 46
