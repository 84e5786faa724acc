"""The two compilations of one source: clang's device code for the GPU, and the same source for the host."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_testkit.hipcc_standin.launches import translate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_testkit.hipcc_standin.arguments import Request

__all__ = ["CompilationError", "compile_device", "compile_host", "run"]

INCLUDE: Final = Path(__file__).with_name("include")
_PLATFORM: Final = ("-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", "-Qunused-arguments")
#: Both sections are part of what is linked; the assembler copies the files, so no path stays behind.
_EMBED: Final = """
__asm__(".pushsection .hip_fatbin,\\"aR\\",@progbits\\n.p2align 12\\n.incbin \\"{bundle}\\"\\n.popsection\\n"
        ".pushsection .rpl_source,\\"aR\\",@progbits\\n.incbin \\"{source}\\"\\n.byte 0\\n.popsection\\n");
"""


class CompilationError(Exception):
    """A compiler failed; it has said why on stderr."""


def run(command: Sequence[str | Path]) -> None:
    """Run a compiler with its messages on our stderr."""
    if subprocess.run([str(word) for word in command], check=False).returncode != 0:
        raise CompilationError


def compile_device(clang: str, source: str, request: Request, output: str | Path) -> None:
    """Device code of one source as an offload bundle at ``output``."""
    standard = ("-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-I", INCLUDE, *_PLATFORM)
    # -O3 is hipcc's own default; an option of the user comes later and wins.
    identity = f"-cuid={_unit_id(source, request)}"
    run([clang, *standard, identity, "-O3", *request.device, "-c", source, "-o", output])


def _unit_id(source: str, request: Request) -> str:
    """The compilation unit's id, a symbol of the device code.

    Clang hashes the source's real path and all options, the output's name among them (Driver.cpp,
    ``CUIDOptions::getCUID``). That would be a name in the scratch directory, so the user's words are hashed.
    """
    words = [os.path.realpath(source), *request.options]
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def compile_host(clang: str, source: str, request: Request, bundle: Path, output: str | Path) -> None:
    """Host object of one source at ``output``, with ``bundle`` and the source's bytes inside.

    The device compilation has printed the warnings, so this one prints errors only.
    """
    scratch = bundle.parent
    text, copy = scratch / "host.ii", scratch / "source"
    emulated = (*_PLATFORM, "-D__HIP__=1", "-DRPL_HIP_HOST=1", "-I", INCLUDE)
    run([clang, "-x", "c++", "-E", *emulated, *request.host, *request.dependencies, source, "-o", text])
    try:
        translated = translate(text.read_text(encoding="utf-8", errors="surrogateescape"))
    except ValueError as error:
        print(f"{source}: error: {error}", file=sys.stderr)
        raise CompilationError from error
    copy.write_bytes(Path(source).read_bytes())
    embedded = translated + _EMBED.format(bundle=bundle, source=copy)
    text.write_text(embedded, encoding="utf-8", errors="surrogateescape")
    options = ("-w", "-O3", *request.host)
    run([clang, "-x", "c++-cpp-output", *options, "-Qunused-arguments", "-c", text, "-o", output])
