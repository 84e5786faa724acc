"""Runs drawn kernels by the emulator and by the CPU, and tells where they differ."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from rpl_testkit.requirements import require

from .emu_corpus.numbers import inputs, start_of_output
from .emu_corpus.random_kernels import DrawnKernel, source
from .emu_program import CORPUS, DEVICE, Emulator

LEVELS = ("O0", "O1", "O2", "O3")
#: A kernel's words of LDS are read and written as several types.
_BOTH = ("-std=c++20", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-I", CORPUS)
#: Nothing is optimised, and what is undefined ends the program: such a kernel would be no oracle.
_ON_CPU = (
    *_BOTH,
    "-O0",
    "-march=x86-64-v3",
    "-fno-math-errno",
    "-fsanitize=undefined,float-cast-overflow",
    "-fsanitize-trap=all",
    "-Xclang",
    "-ffloat16-excess-precision=none",
)


@attrs.define
class Compared:
    """How often each opcode was executed, and what differs: kernel, level, how."""

    launches: int = 0
    opcodes: Counter[str] = attrs.field(factory=Counter)
    differences: list[tuple[str, str, str]] = attrs.field(factory=list)


def on_cpu(kernels: Sequence[DrawnKernel], text: str, folder: Path) -> dict[str, bytes]:
    """By the kernel's name what it leaves in ``Out``; ``text`` is their source."""
    (folder / "cpu.cpp").write_text(text)
    for name, content in (("in.bin", inputs()), ("start.bin", start_of_output())):
        (folder / name).write_bytes(content)
    program, compiler = folder / "on_cpu", require("clang++-22")
    runners = [CORPUS / "run_drawn.cpp", CORPUS / "run_on_cpu.cpp"]
    _done([compiler, *_ON_CPU, folder / "cpu.cpp", *runners, "-rdynamic", "-o", program])
    given = [word for one in kernels for word in (one.name, str(one.groups), str(one.block))]
    _done([program, folder / "in.bin", folder / "start.bin", folder, *given])
    return {one.name: (folder / one.name).read_bytes() for one in kernels}


def compare(
    kernels: Sequence[DrawnKernel],
    level: str,
    expected: dict[str, bytes],
    emulator: Emulator,
    compared: Compared,
) -> None:
    """Launch each as compiled at ``level`` and add what was found to ``compared``."""
    text, code = emulator.output("gpu.cpp"), emulator.output("gpu.hsaco")
    text.write_text(source(kernels))
    _done([require("clang++-22"), *DEVICE, *_BOTH, f"-{level}", text, "-o", code])
    given, start = emulator.file("in.bin", inputs()), emulator.file("start.bin", start_of_output())
    result = emulator.output("result.bin")
    for one in kernels:
        ran = emulator.launch(
            code,
            one.name,
            given,
            f"{start},out={result}",
            f"i32:{one.groups * one.block}",
            grid=str(one.groups * one.block),
            block=str(one.block),
            # What nobody wrote differs from seed to seed, and may not matter.
            options=("--timeout", "100", "--seed", str(one.seed)),
        )
        compared.launches += 1
        compared.opcodes.update({n: c["executed"] for n, c in ran.document.get("opcodes", {}).items()})
        if ran.status != 0:
            compared.differences.append((one.name, level, f"ended with {ran.status}: {ran.stderr.strip()}"))
        elif result.read_bytes() != expected[one.name]:
            compared.differences.append((one.name, level, "other bytes than on x86"))


def _done(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stderr[-4000:]}"
