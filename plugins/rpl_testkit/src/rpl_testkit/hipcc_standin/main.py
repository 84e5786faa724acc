"""The program: sources in; objects, bundles or one executable out; exit codes and messages as clang's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_testkit.hipcc_standin.arguments import parse
from rpl_testkit.hipcc_standin.passes import (
    HIP,
    CompilationError,
    compile_device,
    compile_host,
    compile_runtime,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_testkit.hipcc_standin.arguments import Request

__all__ = ["main"]

#: What only reads the source makes no code, so clang itself answers.
_FRONT_END_ONLY: Final = frozenset(("-fsyntax-only", "-E", "-M", "-MM"))
_VERSION: Final = "HIP version: 7.2.0-rpl-standin (synthetic)"
#: Where the launcher keeps what all programs share (see install.py).
KEPT_VARIABLE: Final = "RPL_STANDIN_HIPCC_KEPT"


def main(arguments: Sequence[str]) -> int:
    """Run the stand-in and return its exit code."""
    clang = os.environ.get("RPL_STANDIN_CLANG") or shutil.which("clang++-22")
    if clang is None:
        print("hipcc: error: this stand-in needs clang++-22 on PATH", file=sys.stderr)
        return 1
    if "--version" in arguments:
        print(_VERSION, flush=True)
        return subprocess.run([clang, "--version"], check=False).returncode
    if _FRONT_END_ONLY & set(arguments):
        return subprocess.run([clang, *HIP, *arguments], check=False).returncode
    request = parse(arguments)
    problem = _problem(request)
    if problem:
        print(f"hipcc: error: {problem}", file=sys.stderr)
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="rpl-hipcc-") as scratch:
            _build(clang, request, Path(scratch))
    except CompilationError:
        return 1
    return 0


def _problem(request: Request) -> str | None:
    if request.refused:
        return f"{' '.join(request.refused)} is not part of rpl's stand-in for hipcc"
    if not request.sources and not request.objects:
        return "no input files"
    missing = [name for name in request.sources if not Path(name).is_file()]
    if missing:
        return f"no such file or directory: '{missing[0]}'"
    if len(request.sources) > 1 and request.output and (request.only_compile or request.device_only):
        return "cannot specify -o when generating multiple output files"
    return None


def _build(clang: str, request: Request, scratch: Path) -> None:
    built: list[Path] = []
    for number, source in enumerate(request.sources):
        folder = scratch / str(number)
        folder.mkdir()
        if request.device_only:
            target = Path(request.output or f"{Path(source).stem}.hipfb")
            compile_device(clang, source, request, folder, target)
            continue
        own = Path(request.output or f"{Path(source).stem}.o")
        target = own if request.only_compile else folder / "host.o"
        bundle = None
        if not request.host_only:
            bundle = folder / "bundle.hipfb"
            compile_device(clang, source, request, folder, bundle)
        compile_host(clang, source, request, bundle, target)
        built.append(target)
    if not request.only_compile and not request.device_only:
        _link(clang, request, built, scratch)


def _link(clang: str, request: Request, built: Sequence[Path], scratch: Path) -> None:
    kept = os.environ.get(KEPT_VARIABLE)
    runtime = compile_runtime(clang, None if kept is None else Path(kept), scratch)
    libraries = ("-fuse-ld=lld", *request.link)
    output = request.output or "a.out"
    run(
        [
            clang,
            *built,
            *request.objects,
            runtime,
            "-Qunused-arguments",
            *request.host,
            *libraries,
            "-o",
            output,
        ]
    )
