"""Compile one source file to a code object with whatever HIP compiler is installed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rpl_codeobject.reading.read import code_objects_from
from rpl_codeobject.values import CodeObject
from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.values import frozen
from rpl_optimize.build.environment import build_environment
from rpl_optimize.isolation.confined_run import run_confined
from rpl_optimize.isolation.sandbox import Reach

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
        """Compile ``text`` as one translation unit for the device only, in the sandbox of the builds."""
        with tempfile.TemporaryDirectory(prefix="rpl-compile-") as scratch:
            place = Path(scratch)
            source, output, messages = (place / name for name in ("source.hip", "source.hsaco", "messages"))
            source.write_bytes(text)
            reach = Reach((() if self.include is None else (self.include,)), (place,), place)
            environment = build_environment(place, place)
            try:
                command = self.command(source, output)
                done = run_confined(command, place, reach, environment, _TIME_LIMIT_S, log=messages)
                if not done.succeeded or not output.is_file():
                    return NotCompiled(_first_error(messages.read_text(encoding="utf-8", errors="replace")))
                return code_objects_from(output.read_bytes(), "compiled kernel")[0]
            except InterruptedRunError:
                raise
            except RplError as error:
                return NotCompiled(error.fact)


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "error:" in line]
    return lines[0] if lines else "the compiler failed without a message"
