"""Builds one CUDA source with nvcc, for ``rpl optimize``.

nvcc compiles host and device at once, so the host's code is compared: the original and the candidate are each
compiled to an object at the same place, and everything but the device code must be bit-identical.
nvcc shows no syntax tree; what an edit means is read by clang, which knows CUDA's language.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.files import make_directory, read_regular
from rpl_core.process import require_program
from rpl_core.values import frozen
from rpl_optimize.build.build_run import BuildRun, StepFailedError, TextBuilder, build_environment
from rpl_optimize.build.host_code import HOST_CODE
from rpl_optimize.build.systems import OUTPUT, SOURCE, given_words, is_header
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure, BuildSystem, Compilation
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.running.program_word import find_program
from rpl_sm90.collector import cuda_roots
from rpl_sm90.cubin import MOST_BYTES, cubins_of
from rpl_sm90.device_code import CudaCode, find_disassembler
from rpl_sm90.products import ARCHITECTURE

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import BuildRequest
    from rpl_optimize.running.program_word import Program

_NVCC = "nvcc"
_CLANG = ("clang++", *(f"clang++-{version}" for version in range(22, 17, -1)))
_CLANG_HEADERS = Path(__file__).with_name("native") / "clang"
#: nvcc's options that clang has under the same name; of the others clang need not know.
_SHARED = ("-I", "-D", "-U", "-std=", "--std=", "-O", "-isystem", "-include")
_WITH_VALUE = frozenset(("-I", "-D", "-U", "-isystem", "-include", "-std", "--std"))
_ARCHITECTURES = ("-arch", "--gpu-architecture", "-gencode", "--generate-code")
#: Not part of the host's code: device code, where it lies, and nvcc's names for scratch files.
_OF_DEVICE = frozenset((".nv_fatbin", "__nv_module_id"))
_TABLES = frozenset(("SHT_SYMTAB", "SHT_STRTAB"))
_INSTRUCTION_BYTES = 16
#: Where the kernels lie one behind the other, nvcc puts the source's last one first.
_PADDING = (b'\n__global__ void rpl_placement_padding() { asm volatile("', b"nanosleep.u32 1; ", b'"); }\n')


class NvccBuilds(BuildSystem):
    """``--build "nvcc ... {source} -o {output}"``, and a ``.cu`` for an H100 or H200 without any word."""

    name = "nvcc"
    summary = "One CUDA source by nvcc, read by clang."
    priority = 40

    def builder(self, request: BuildRequest) -> Builder | None:
        words = given_words(request)
        if words:
            filled = all(any(name in word for word in words) for name in (SOURCE, OUTPUT))
            if Path(words[0]).name != _NVCC or not filled:
                return None
        elif not _is_ours(request):
            return None
        else:
            words = (_NVCC, "-O3", f"-arch={ARCHITECTURE}", SOURCE, "-o", OUTPUT)
        if is_header(request.source):
            raise UsageError(f"{request.source.name} is a header, so no command for one file builds it")
        require_program(words)
        find_disassembler()
        return NvccBuilder(
            summary=" ".join(words),
            words=words,
            reading=reading_command(words, request.source),
            command=request.command,
            source=request.source,
            program=find_program(request.command, request.binary, request.place, _holds_cubins),
            place=request.place,
            time_limit_s=request.time_limit_s,
        )

    def kernels_of(self, path: Path) -> tuple[str, ...]:
        try:
            return tuple(name for cubin in cubins_of(path) for name in cubin.kernels)
        except (RplError, OSError):
            return ()


def _is_ours(request: BuildRequest) -> bool:
    other = request.project is not None or request.compile_database is not None
    return not other and request.source.suffix == ".cu" and request.architecture == ARCHITECTURE


def _holds_cubins(path: Path) -> bool:
    try:
        return path.is_file() and bool(cubins_of(path))
    except BadDataError:  # packed, so there is device code
        return True
    except (RplError, OSError):
        return False


def reading_command(words: Sequence[str], source: Path) -> tuple[str, ...]:
    """Clang's command that reads ``source`` as nvcc does by ``words``.

    Raises ``MissingError`` without clang.
    """
    clang = next((found for found in map(shutil.which, _CLANG) if found), None)
    if clang is None:
        raise MissingError(
            "no clang was found, and nvcc shows nobody what an edit means",
            next_step="install clang 18 or later, which reads CUDA sources",
        )
    return (
        *(clang, "-x", "cuda", f"--cuda-path={_toolkit()}", f"--cuda-gpu-arch={_architecture(words)}"),
        *("-nocudalib", "-Wno-unknown-cuda-version", f"-idirafter{_CLANG_HEADERS}"),
        *("-include", str(_CLANG_HEADERS / "rpl_reading.h"), *_options(words), str(source)),
    )


def _toolkit() -> Path:
    for root in cuda_roots():
        if (root / "include" / "cuda_runtime.h").is_file() and (root / "nvvm").is_dir():
            return root
    raise MissingError("CUDA's headers were not found", next_step="set CUDA_HOME to CUDA's toolkit")


def _architecture(words: Sequence[str]) -> str:
    """``sm_90`` or ``sm_90a``, whatever the spelling."""
    named = [
        word if "=" in word else f"{word}={value}"
        for word, value in zip(words, (*words[1:], ""), strict=True)
        if word.startswith(_ARCHITECTURES)
    ]
    return "sm_90a" if any("90a" in word for word in named) else ARCHITECTURE


def _options(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words[1:])
    for word in rest:
        if word in _WITH_VALUE:
            value = next(rest, "")
            yield from (f"{word.lstrip('-').join(('-', '='))}{value}",) if "std" in word else (word, value)
        elif word.startswith(_SHARED):
            yield word.replace("--std", "-std")


@frozen
class NvccBuilder(TextBuilder):
    """Runs ``words`` in ``place`` with the candidate in a scratch directory, as ``TemplateBuilder`` does."""

    summary: str
    words: tuple[str, ...]
    reading: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    place: Path
    time_limit_s: float

    @property
    def devices(self) -> tuple[Path, ...]:
        return tuple(sorted(Path("/dev").glob("nvidia*")))

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s, (self.source.parent,))) as run:
            source = run.directory / "source" / self.source.name
            output = run.directory / "bin" / self.program.path.name
            make_directory(output.parent)
            environment = build_environment(run.temporary, self.place, include=(self.source.parent,))
            try:
                host = None
                if original is not None:
                    host = self._host_code(run, environment, source, original, text)
                run.write(source, text)
                run.step(self._filled(source, output), self.place, environment)
                if not output.is_file():
                    return run.failed("the build command ended well, but wrote no {output}")
                code = CudaCode(cubins_of(output))
            except StepFailedError as error:
                return run.failed(str(error))
            except BadDataError as error:
                return run.failed(error.fact)
            if not code.cubins:
                return run.failed(f"{output.name} holds no machine code for an H100 or H200")
            reads = (Compilation(self.reading, self.place),)
            return attrs.evolve(run.finished(output, host), code=code, compilations=reads)

    def padded(self, text: bytes, padding_bytes: int) -> bytes | None:
        return text + _padding(padding_bytes)

    def _filled(self, source: Path, output: Path, *more: str) -> tuple[str, ...]:
        filled = (word.replace(SOURCE, str(source)).replace(OUTPUT, str(output)) for word in self.words)
        return (*filled, "--no-compress", *more)

    def _host_code(
        self, run: BuildRun, environment: dict[str, str], source: Path, original: bytes, text: bytes
    ) -> GuardVerdict:
        """A padded text is compared with the original that is padded alike."""
        end = text.rfind(_PADDING[0])
        padding = text[end:] if end >= 0 and text[end:] == _padding_like(text[end:]) else b""
        digests: list[str] = []
        for version in (original + padding, text):
            target = run.temporary / "host.o"
            target.unlink(missing_ok=True)
            run.write(source, version)
            run.step(self._filled(source, target, "-c"), self.place, environment, recorded=False)
            try:
                digests.append(host_digest(target))
            except RplError as error:
                return GuardVerdict(HOST_CODE, False, f"the host's code can't be compared: {error.fact}")
        if digests[0] != digests[1]:
            return GuardVerdict(
                HOST_CODE, False, f"the host's code of {source.name} changes, that of the kernels alone may"
            )
        return GuardVerdict(HOST_CODE, True, "the host's code is bit-identical")


def _padding(padding_bytes: int) -> bytes:
    begin, word, end = _PADDING
    return begin + word * (padding_bytes // _INSTRUCTION_BYTES) + end


def _padding_like(text: bytes) -> bytes:
    return _padding(text.count(_PADDING[1]) * _INSTRUCTION_BYTES)


def host_digest(compiled: Path) -> str:
    """SHA-256 over everything in an object of nvcc that the host executes, reads or resolves.

    Left out: the device code, debug information's names of scratch files, and the name of the scratch file
    that nvcc's preprocessor left (a symbol of kind FILE). Raises ``BadDataError``.
    """
    digest = hashlib.sha256()
    add = partial(_add, digest.update)
    try:
        file = ELFFile(BytesIO(read_regular(compiled, MOST_BYTES)))
        for section in file.iter_sections():
            if section.name in _OF_DEVICE or section["sh_type"] in _TABLES:
                continue
            size = section["sh_size"]
            content = str(size).encode() if section["sh_type"] == "SHT_NOBITS" else section.data()
            add(section.name, section["sh_type"], str(section["sh_flags"]), content)
        table = file.get_section_by_name(".symtab")
        for symbol in () if table is None else table.iter_symbols():
            entry = symbol.entry
            if entry["st_info"]["type"] != "STT_FILE":
                place = (entry["st_value"], entry["st_size"], entry["st_shndx"], entry["st_info"])
                add(symbol.name, str(place), "", b"")
    except (ELFError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise BadDataError(f"{compiled.name} is no object of nvcc: {error}") from error
    return digest.hexdigest()


def _add(update: object, name: str, kind: str, flags: str, content: bytes) -> None:
    assert callable(update)
    for part in (name.encode(), kind.encode(), flags.encode(), content):
        update(len(part).to_bytes(8, "little"))
        update(part)
