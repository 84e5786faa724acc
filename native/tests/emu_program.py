"""The emulator in tests: compile kernels, run them, read what came out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from rpl_codeobject.kernel_code import CodeObject
from rpl_codeobject.occupancy import LaunchAssumption
from rpl_optimize.loop.binary_stage import guard_binary

CORPUS = Path(__file__).parent / "emu_corpus"
DEVICE = (
    "-x",
    "hip",
    "-std=c++20",
    "--offload-arch=gfx942",
    "--offload-device-only",
    "--no-gpu-bundle-output",
    "-nogpulib",
    "-nogpuinc",
    "-w",
    "-ffp-contract=off",
    "-Xclang",
    "-ffloat16-excess-precision=none",
)
#: Statuses that a code object may lead to, however broken it is.
STATUSES = frozenset({0, 1, 4, 64, 65, 69, 124})


@attrs.frozen
class Launched:
    status: int
    document: dict[str, Any]
    stderr: str


@attrs.frozen
class Emulator:
    """``program`` is rpl-emu, ``folder`` one for files."""

    program: Path
    folder: Path

    def launch(
        self,
        code: Path,
        kernel: str,
        *arguments: str,
        grid: str = "64",
        block: str = "64",
        options: tuple[str, ...] = (),
    ) -> Launched:
        words = [self.program, "launch", code, "--kernel", kernel, "--grid", grid, "--block", block, "--json"]
        for argument in arguments:
            words += ["--arg", argument]
        done = subprocess.run([*words, *options], capture_output=True, text=True, timeout=120)
        return Launched(done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr)

    def file(self, name: str, content: Any) -> str:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes())
        return f"file:{path}"

    def output(self, name: str) -> Path:
        return self.folder / name

    def step(self, *lines: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        command = [self.program, "step", *options]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def kernels_of(code: Path) -> list[str]:
    listed = subprocess.run(["llvm-nm-22", code], capture_output=True, text=True, check=True).stdout
    return sorted(
        line.split()[-1].removesuffix(".kd") for line in listed.splitlines() if line.endswith(".kd")
    )


def cooperation_refusals(
    before: Sequence[CodeObject], after: Sequence[CodeObject], kernel: str, **declared: Any
) -> list[str]:
    """Why the optimizer's guards of machine code refuse how work-items of ``after`` cooperate."""
    parts = guard_binary(
        before,
        after,
        kernel,
        launch=LaunchAssumption(),
        architecture_of=lambda _: None,
        must_change_loop=False,
        **declared,
    )
    return [part.reason for part in parts if part.guard == "binary-cooperation" and not part.passed]
