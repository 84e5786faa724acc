"""Compile one source file to a code object with whatever HIP compiler is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from rpl_codeobject.reading.read import code_objects_from
from rpl_codeobject.values import CodeObject
from rpl_core.errors import RplError
from rpl_core.values import frozen

#: In order of preference: the user's ROCm first, then a plain clang.
COMPILERS = ("amdclang++", "/opt/rocm/llvm/bin/clang++", "clang++-22", "clang++")
_TIME_LIMIT_S = 120.0


@frozen
class NotCompiled:
    """Why there is no code object: the compiler's first error, or what is missing."""

    reason: str


@frozen
class DeviceCompiler:
    """``flags`` are added behind the standard ones; ``include`` is searched for the source's own headers."""

    program: Path
    architecture: str
    flags: tuple[str, ...] = ()
    include: Path | None = None

    def command(self, source: Path, output: Path) -> tuple[str, ...]:
        """The whole command line."""
        places = () if self.include is None else ("-I", str(self.include))
        standard = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-O3")
        target = f"--offload-arch={self.architecture}"
        files = (str(source), "-o", str(output))
        return (str(self.program), *standard, target, *self.flags, *places, *files)

    def compile(self, text: bytes) -> CodeObject | NotCompiled:
        """Compile ``text`` as one translation unit for the device only."""
        with tempfile.TemporaryDirectory(prefix="rpl-compile-") as scratch:
            source, output = Path(scratch, "source.hip"), Path(scratch, "source.hsaco")
            source.write_bytes(text)
            try:
                done = subprocess.run(
                    self.command(source, output),
                    capture_output=True,
                    timeout=_TIME_LIMIT_S,
                    check=False,
                    cwd=scratch,
                )
                if done.returncode != 0 or not output.is_file():
                    return NotCompiled(_first_error(done.stderr.decode("utf-8", "replace")))
                return code_objects_from(output.read_bytes(), "compiled kernel")[0]
            except (OSError, subprocess.TimeoutExpired) as error:
                return NotCompiled(str(error))
            except RplError as error:
                return NotCompiled(error.fact)


def find_compiler() -> Path | None:
    """The first installed compiler of ``COMPILERS``."""
    found = (shutil.which(name) for name in COMPILERS)
    return next((Path(path) for path in found if path is not None), None)


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "error:" in line]
    return lines[0] if lines else "the compiler failed without a message"
