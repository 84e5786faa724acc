"""The compilations of one source, as hipcc has them: clang's device code as a bundle, then the host with it.

To the bundle comes what takes the GPU's place: the same device code compiled for the CPU, as a library. It is
clang's own device compilation with the host as its target, so no code of the host gets into it.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rpl_testkit.hipcc_standin.bundle import ARGUMENTS, KERNELS, SOURCE, with_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rpl_testkit.hipcc_standin.arguments import Request

__all__ = ["CompilationError", "compile_device", "compile_host", "compile_runtime", "run"]

_HERE: Final = Path(__file__).parent
_RUNTIME: Final = _HERE / "runtime" / "cpu_runtime.cpp"
HIP: Final = (
    *("-x", "hip", "-nogpuinc", "-nogpulib", "-I", str(_HERE / "include")),
    *("-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", "-Qunused-arguments"),
    "-O3",  # hipcc's own default; an option of the user comes later and wins
)
_HOST: Final = "x86_64-unknown-linux-gnu"
#: Device code for the host's processor. Else the GPU would have to know the calling convention of kernels.
_CPU: Final = (
    *("--offload-host-only", "-DRPL_HIP_CPU=1", "-fPIC", "-w", "-Xclang", "-fcuda-is-device"),
    *("-Xclang", "-aux-triple", "-Xclang", _HOST),
)
#: A line by which preprocessed text says which file the next ones are of.
_LINE_OF: Final = re.compile(rb'# \d+ "([^"]*)"')
#: Relocations of calls (x86-64 psABI): what else is undefined is data.
_CALLS: Final = frozenset((4,))  # R_X86_64_PLT32


class CompilationError(Exception):
    """A compiler failed; it has said why on stderr."""


def run(command: Sequence[str | Path]) -> None:
    """Run a compiler with its messages on our stderr."""
    if subprocess.run([str(word) for word in command], check=False).returncode != 0:
        raise CompilationError


def compile_device(clang: str, source: str, request: Request, scratch: Path, output: Path) -> None:
    """The bundle of one source at ``output``."""
    common = (clang, *HIP, *_identity(source, request))
    bare, cpu = scratch / "device.hipfb", scratch / "cpu.o"
    run([*common, "--offload-device-only", *request.device, "-c", source, "-o", bare])
    run([*common, *_CPU, *request.host, "-g0", "-c", source, "-o", cpu])
    added = {
        KERNELS: _cpu_library(clang, cpu).read_bytes(),
        ARGUMENTS: _argument_sizes(bare),
        SOURCE: _text_of(clang, source, request),
    }
    output.write_bytes(with_entries(bare.read_bytes(), added))


def _text_of(clang: str, source: str, request: Request) -> bytes:
    """The source as it is, and where it includes files of its own, with what they say."""
    text = Path(source).read_bytes()
    if b'#include "' not in text:
        return text
    words = (clang, *HIP, "--offload-host-only", *request.host, "-E", "-w", source)
    # The real one has no such step, so who asks clang what a build does is not told of it.
    environment = {name: value for name, value in os.environ.items() if name != "CC_PRINT_OPTIONS"}
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, env=environment)
    if done.returncode != 0:
        raise CompilationError
    kept, foreign = [text, b"\n"], True
    for line in done.stdout.splitlines(keepends=True):
        if marker := _LINE_OF.match(line):
            foreign = marker[1].startswith((b"/usr", b"<", os.fsencode(_HERE)))
        elif not foreign:
            kept.append(line)
    return b"".join(kept)


def compile_host(clang: str, source: str, request: Request, bundle: Path | None, output: Path) -> None:
    """The host object of one source, with ``bundle`` inside or whatever the options name.

    The device compilation has printed the warnings, so this one prints errors only.
    """
    given = () if bundle is None else ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", bundle)
    host_only = (*HIP, "--offload-host-only", "-w", *_identity(source, request), *given)
    run([clang, *host_only, *request.host, *request.dependencies, "-c", source, "-o", output])


def compile_runtime(clang: str, kept: Path | None, scratch: Path) -> Path:
    """The object with the runtime's functions, which is the same for all programs: ``kept`` holds it."""
    words = f"{clang}\0{_RUNTIME.read_text(encoding='utf-8')}"
    name = f"runtime-{hashlib.sha256(words.encode()).hexdigest()[:16]}.o"
    if kept is not None and (kept / name).is_file():
        return kept / name
    made = scratch / name
    run([clang, "-std=gnu++17", "-O2", "-w", "-fPIC", "-c", _RUNTIME, "-o", made])
    try:
        if kept is not None:
            temporary = kept / f"{name}.{os.getpid()}"
            temporary.write_bytes(made.read_bytes())
            temporary.replace(kept / name)
    except OSError:
        pass  # a read-only place: the next link compiles it again
    return made


def _identity(source: str, request: Request) -> tuple[str, ...]:
    """The compilation unit's id, part of names in device and host code, unless the user gave one.

    Clang hashes the source's real path and all options, the output's name among them (Driver.cpp,
    ``CUIDOptions::getCUID``). That would be a name in the scratch directory, so the user's words are hashed.
    """
    if any(option.startswith("-cuid=") for option in request.options):
        return ()
    words = [os.path.realpath(source), *request.options]
    hashed = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()
    return (f"-cuid={hashed[:16]}",)


def _cpu_library(clang: str, compiled: Path) -> Path:
    """Link the kernels for the CPU; all arrays in LDS whose size the launch tells are the same memory."""
    library = compiled.with_suffix(".so")
    arrays = [f"-Wl,--defsym={name}=rpl_hip_lds" for name in sorted(_undefined_data(compiled))]
    linker = ("-shared", "-nostartfiles", "-fuse-ld=lld", "-Wl,-s", "-Wl,-Bsymbolic")
    run([clang, *linker, *arrays, compiled, "-lm", "-o", library])
    return library


def _undefined_data(compiled: Path) -> set[str]:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.relocation import RelocationSection

    found = set()
    with compiled.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            symbols: Any = elf.get_section(section["sh_link"])
            for relocation in section.iter_relocations():
                symbol = symbols.get_symbol(relocation["r_info_sym"])
                if symbol["st_shndx"] == "SHN_UNDEF" and relocation["r_info_type"] not in _CALLS:
                    found.add(symbol.name)
    return found - {"", "_GLOBAL_OFFSET_TABLE_"}


def _argument_sizes(bundle: Path) -> bytes:
    """Lines of each kernel's name and the bytes of its arguments, as the device code's metadata has them."""
    return "".join(f"{line}\n" for line in _size_lines(bundle)).encode()


def _size_lines(bundle: Path) -> Iterator[str]:
    from rpl_codeobject.reading.read import read_code_objects

    for kernel in read_code_objects(bundle)[0].kernels:
        sizes = (str(argument.size) for argument in kernel.arguments if not argument.hidden)
        yield " ".join((kernel.name, *sizes))
