"""A stand-in for hipcc: real host programs with real gfx942 code, where neither ROCm nor a GPU is at hand.

``install_hipcc(directory)`` puts a program ``hipcc`` there. It needs clang++-22 with ld.lld-22, no ROCm. Of
each HIP source it makes what hipcc makes: the device code (clang's, as a bundle), then clang's host code with
that bundle in ``.hip_fatbin``. The bundle also carries the same device code compiled for the CPU, which the
program loads and runs work-item by work-item when it launches a kernel. So results are really computed and a
wrong kernel computes wrong ones; how long it takes says nothing about a GPU. What runs is what the bundle
holds: ``--offload-host-only -Xclang -fcuda-include-gpubinary -Xclang FILE`` puts any bundle into host code.

    bench = rpl_closed_loop_bench          # pytest fixture: hipcc and rocprofv3 stand-ins first on PATH
    bench.hipcc("-O3", "smooth.hip", "-o", "smooth", cwd=folder)
    read_code_objects(folder / "smooth")

What a source may use of HIP is in ``include/``: launches with ``<<<>>>`` and ``hipLaunchKernelGGL``, memory,
streams, events and error calls (all synchronous), modules from files, LDS, ``__syncthreads``, shuffles and
ballots of 64 lanes, atomics, float mathematics (for ``std::`` it includes ``<cmath>`` itself). The bundle
keeps the bytes of the source it was compiled from, and what it includes with quotes: the timing model of the
rocprofv3 stand-in looks there.
As with hipcc, device code holds an id of the source's path and the options, the output's name among them.
``RPL_STANDIN_CLANG`` names another clang++.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from rpl_core.values import frozen
from rpl_testkit.launchers import python_program, write_launcher

# Where it is installed, and what it needs there.


def install_hipcc(directory: Path) -> Path:
    """Write an executable ``hipcc`` into ``directory`` (created if absent) and return its path."""
    variable = f"{KEPT_VARIABLE}={shlex.quote(str(directory.absolute()))}"
    note = "Synthetic stand-in, not the compiler driver of ROCm."
    words = python_program("rpl_testkit.hipcc_standin", "main(sys.argv[1:])")
    return write_launcher(directory / "hipcc", note, f"{variable} exec {shlex.join(words)}")


def standin_places() -> str:
    """What the stand-in needs to read, for the variable ``RPL_SANDBOX_READ``: Python and these packages."""
    import rpl_codeobject
    import rpl_core

    interpreter = (sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1]))
    files = (__file__, rpl_codeobject.__file__, rpl_core.__file__)
    packages = (str(Path(file).resolve().parents[1]) for file in files if file is not None)
    return os.pathsep.join((*interpreter, str(Path(__file__).resolve().parents[2]), *packages))


# The offload bundle of the stand-in: clang's, with three entries more that belong to the CPU.
#
# Layout of ``__CLANG_OFFLOAD_BUNDLE__``: clang's ``ClangOffloadBundler`` document. Who looks for device
# code passes over entries of the host.

#: A shared library with the kernels for the CPU; lines of a kernel's name and the sizes of its arguments; the
#: bytes of the source that both were compiled from.
KERNELS, ARGUMENTS, SOURCE = "host-rpl-kernels", "host-rpl-arguments", "host-rpl-source"
_MAGIC: Final = b"__CLANG_OFFLOAD_BUNDLE__"
_COUNT: Final = struct.Struct("<Q")
_ENTRY: Final = struct.Struct("<QQQ")
#: As clang aligns device code, which the runtime maps.
_ALIGNMENT: Final = 4096


def bundle_entries(data: bytes, start: int = 0) -> Iterator[tuple[str, bytes]]:
    """Name and content of each entry of the bundle at ``start``. ValueError where there is none."""
    if not data.startswith(_MAGIC, start):
        raise ValueError("no offload bundle")
    at = start + len(_MAGIC)
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    for _ in range(count):
        offset, size, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        yield data[at : at + length].decode(), data[start + offset : start + offset + size]
        at += length


def sources_in(section: bytes) -> Iterator[bytes]:
    """The source of each bundle in a section ``.hip_fatbin``, which holds one per translation unit."""
    at = section.find(_MAGIC)
    while at >= 0:
        entries = dict(bundle_entries(section, at))
        if SOURCE in entries:
            yield entries[SOURCE]
        # The magic may also stand inside of an entry, so what the bundle holds is passed over.
        at = section.find(_MAGIC, at + max(len(_MAGIC), sum(map(len, entries.values()))))


def with_entries(data: bytes, more: Mapping[str, bytes]) -> bytes:
    """The bundle ``data`` with the entries ``more`` behind its own."""
    entries = {**dict(bundle_entries(data)), **more}
    end = len(_MAGIC) + _COUNT.size + sum(_ENTRY.size + len(name.encode()) for name in entries)
    header, content = [_MAGIC, _COUNT.pack(len(entries))], b""
    begin = -(-end // _ALIGNMENT) * _ALIGNMENT
    for name, code in entries.items():
        header += [_ENTRY.pack(begin + len(content), len(code), len(name.encode())), name.encode()]
        content += code + bytes(-len(code) % _ALIGNMENT)
    return b"".join(header).ljust(begin, b"\0") + content


#: Options whose value is the next word.
_WITH_VALUE: Final = (
    *("-o", "-x", "-I", "-D", "-U", "-include", "-isystem", "-idirafter", "-iquote", "-MF", "-MT", "-MQ"),
    *("-L", "-l", "-T", "-Xlinker", "-Xclang", "-mllvm", "-Xarch_device", "-Xarch_host"),
)
#: As hipcc has it: each of these is HIP, whatever its ending says.
_SOURCES: Final = frozenset((".hip", ".cpp", ".cu", ".cc", ".cxx", ".C"))
_DEVICE_ONLY: Final = frozenset(("--genco", "--cuda-device-only", "--offload-device-only"))
_HOST_ONLY: Final = frozenset(("--cuda-host-only", "--offload-host-only"))
_REFUSED: Final = frozenset(("-E", "-S", "-fgpu-rdc"))
_DEFAULT_ARCHITECTURE: Final = "gfx942"


@frozen
class Request:
    """What to do. ``device``, ``host`` and ``link`` are options; ``dependencies`` those of the -M family."""

    options: tuple[str, ...]  # everything but the inputs, as given
    sources: tuple[str, ...]
    objects: tuple[str, ...]
    output: str | None
    only_compile: bool
    device_only: bool
    host_only: bool
    device: tuple[str, ...]
    host: tuple[str, ...]
    link: tuple[str, ...]
    dependencies: tuple[str, ...]
    refused: tuple[str, ...]


@attrs.define
class _Sorted:
    inputs: list[str] = attrs.field(factory=list)
    output: str | None = None
    flags: set[str] = attrs.field(factory=set)
    device: list[str] = attrs.field(factory=list)
    host: list[str] = attrs.field(factory=list)
    link: list[str] = attrs.field(factory=list)
    dependencies: list[str] = attrs.field(factory=list)

    def add(self, words: list[str]) -> None:
        option = words[0]
        if option == "-o":
            self.output = words[-1]
        elif option == "-c" or option in _DEVICE_ONLY | _HOST_ONLY | _REFUSED:
            self.flags.add(option)
        elif option.startswith(("--offload-arch", "--amdgpu-target")):
            named = option.replace("--amdgpu-target", "--offload-arch")
            self.device.append(named.replace("=native", f"={_DEFAULT_ARCHITECTURE}"))
        elif option.startswith("-M"):
            self.dependencies += words
        elif option.startswith(("-l", "-L", "-Wl,", "-Xlinker")):
            self.link += words
        elif option == "-Xarch_device":
            self.device.append(words[1])
        elif option == "-Xarch_host":
            self.host.append(words[1])
        elif option != "-x":
            self.device += words
            self.host += words


def parse(arguments: Sequence[str]) -> Request:
    """Sort the words of a command line; what is not known goes to clang, which has the last word on it."""
    sorted_words = _Sorted()
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "-":
            sorted_words.inputs.append(word)
            continue
        value = [next(words, "")] if word in _WITH_VALUE else []
        if word.startswith("-o") and len(word) > 2 and not word.startswith("-offload"):
            word, value = "-o", [word[2:]]
        sorted_words.add([word, *value])
    if not any(option.startswith("--offload-arch") for option in sorted_words.device):
        sorted_words.device.append(f"--offload-arch={_DEFAULT_ARCHITECTURE}")
    inputs = frozenset(sorted_words.inputs)
    return Request(
        options=tuple(word for word in arguments if word not in inputs),
        sources=tuple(i for i in sorted_words.inputs if Path(i).suffix in _SOURCES),
        objects=tuple(i for i in sorted_words.inputs if Path(i).suffix not in _SOURCES),
        output=sorted_words.output,
        only_compile="-c" in sorted_words.flags,
        device_only=bool(sorted_words.flags & _DEVICE_ONLY),
        host_only=bool(sorted_words.flags & _HOST_ONLY),
        device=tuple(sorted_words.device),
        host=tuple(sorted_words.host),
        link=tuple(sorted_words.link),
        dependencies=tuple(sorted_words.dependencies),
        refused=tuple(sorted(sorted_words.flags & _REFUSED)),
    )


# The compilations of one source, as hipcc has them: clang's device code as a bundle, then the host with it.
#
# To the bundle comes what takes the GPU's place: the same device code compiled for the CPU, as a library.
# It is clang's own device compilation with the host as its target, so no code of the host gets into it.

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
    # Lines of each kernel's name and the bytes of its arguments, as the device code's metadata has
    # them.
    # Link the kernels for the CPU; all arrays in LDS whose size the launch tells are the same memory.
    library = cpu.with_suffix(".so")
    arrays = [f"-Wl,--defsym={name}=rpl_hip_lds" for name in sorted(_undefined_data(cpu))]
    linker = ("-shared", "-nostartfiles", "-fuse-ld=lld", "-Wl,-s", "-Wl,-Bsymbolic")
    run([clang, *linker, *arrays, cpu, "-lm", "-o", library])
    added = {
        KERNELS: library.read_bytes(),
        ARGUMENTS: "".join(f"{line}\n" for line in _size_lines(bare)).encode(),
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
    lines_kept, foreign = [text, b"\n"], True
    for line in done.stdout.splitlines(keepends=True):
        if marker := _LINE_OF.match(line):
            foreign = marker[1].startswith((b"/usr", b"<", os.fsencode(_HERE)))
        elif not foreign:
            lines_kept.append(line)
    return b"".join(lines_kept)


def compile_host(clang: str, source: str, request: Request, bundle: Path | None, output: Path) -> None:
    """The host object of one source, with ``bundle`` inside or whatever the options name.

    The device compilation has printed the warnings, so this one prints errors only.
    """
    given = () if bundle is None else ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", bundle)
    host_only = (*HIP, "--offload-host-only", "-w", *_identity(source, request), *given)
    run([clang, *host_only, *request.host, *request.dependencies, "-c", source, "-o", output])


def compile_runtime(clang: str, cache: Path | None, scratch: Path) -> Path:
    """The object with the runtime's functions, which is the same for all programs: ``cache`` holds it."""
    words = f"{clang}\0{_RUNTIME.read_text(encoding='utf-8')}"
    name = f"runtime-{hashlib.sha256(words.encode()).hexdigest()[:16]}.o"
    if cache is not None and (cache / name).is_file():
        return cache / name
    made = scratch / name
    run([clang, "-std=gnu++17", "-O2", "-w", "-fPIC", "-c", _RUNTIME, "-o", made])
    try:
        if cache is not None:
            temporary = cache / f"{name}.{os.getpid()}"
            temporary.write_bytes(made.read_bytes())
            temporary.replace(cache / name)
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


def _undefined_data(compiled: Path) -> set[str]:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.relocation import RelocationSection

    undefined = set()
    with compiled.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            symbols: Any = elf.get_section(section["sh_link"])
            for relocation in section.iter_relocations():
                symbol = symbols.get_symbol(relocation["r_info_sym"])
                if symbol["st_shndx"] == "SHN_UNDEF" and relocation["r_info_type"] not in _CALLS:
                    undefined.add(symbol.name)
    return undefined - {"", "_GLOBAL_OFFSET_TABLE_"}


def _size_lines(bundle: Path) -> Iterator[str]:
    from rpl_codeobject.reading import read_code_objects

    for kernel in read_code_objects(bundle)[0].kernels:
        sizes = (str(argument.size) for argument in kernel.arguments if not argument.hidden)
        yield " ".join((kernel.name, *sizes))


# The driver.

#: What only reads the source makes no code, so clang itself answers.
_FRONT_END_ONLY: Final = frozenset(("-fsyntax-only", "-E", "-M", "-MM"))
_VERSION: Final = "HIP version: 7.2.0-rpl-standin (synthetic)"
#: Where the launcher keeps what all programs share (see ``__init__.py``).
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
        object_file = Path(request.output or f"{Path(source).stem}.o")
        target = object_file if request.only_compile else folder / "host.o"
        bundle = None
        if not request.host_only:
            bundle = folder / "bundle.hipfb"
            compile_device(clang, source, request, folder, bundle)
        compile_host(clang, source, request, bundle, target)
        built.append(target)
    if not request.only_compile and not request.device_only:
        _link(clang, request, built, scratch)


def _link(clang: str, request: Request, built: Sequence[Path], scratch: Path) -> None:
    cache = os.environ.get(KEPT_VARIABLE)
    runtime = compile_runtime(clang, None if cache is None else Path(cache), scratch)
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
