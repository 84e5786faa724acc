"""The code of recorded kernels, from every code object that is at hand; what can't be read is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_codeobject.demangle import demangled
from rpl_codeobject.disassembly import Instruction, disassemble, find_disassembler
from rpl_codeobject.kernel_code import CodeObject, Kernel, KernelCode, packed_mix
from rpl_codeobject.reading import code_beside, code_objects_from, read_code_objects, read_uri
from rpl_core.errors import MissingError, RplError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording

__all__ = ["CodeAtHand", "code_at_hand"]

#: Leaves the kernel, other than a branch within it.
_CALL = "s_swappc_b64"


@frozen
class CodeAtHand:
    """Kernels of the recording whose code was found, and what went wrong on the way."""

    kernels: tuple[KernelCode, ...]
    diagnostics: tuple[Diagnostic, ...]


@frozen
class _Wanted:
    """What the recording says of its kernels: linker symbols, and displayed names without blanks."""

    symbols: frozenset[str]
    names: frozenset[str]

    def has(self, symbol: str, shown: str) -> bool:
        return symbol in self.symbols or bool({symbol, "".join(shown.split())} & self.names)


class _Reader:
    """Reads code objects one after the other and keeps the reasons of those that can't be read."""

    def __init__(self) -> None:
        self.objects: list[tuple[CodeObject, str]] = []
        self.problems: list[Diagnostic] = []

    def take(self, path: Path) -> None:
        self._attempt(path.name, lambda: [(code, path.name) for code in read_code_objects(path)])

    def take_uri(self, uri: str) -> None:
        def read() -> list[tuple[CodeObject, str]]:
            data, name = read_uri(uri)
            return [(code, name) for code in code_objects_from(data, name)]

        self._attempt("a code object that the recording names", read)

    def _attempt(self, where: str, read: Callable[[], list[tuple[CodeObject, str]]]) -> None:
        try:
            self.objects += read()
        except RplError as error:
            self.problems.append(_unreadable(where, error))


def code_at_hand(files: Sequence[Path], *, recorded: bool, recording: Recording) -> CodeAtHand:
    """Code of the kernels of ``recording``: in ``files`` and beside its thread traces; with ``recorded`` also
    beside its other files and where the URIs in it point to.
    """
    reader = _Reader()
    for path in dict.fromkeys((*files, *code_beside(_folders(recording, everywhere=recorded)))):
        reader.take(path)
    for uri in _uris(recording) if recorded else ():
        reader.take_uri(uri)
    if not reader.objects:
        return CodeAtHand((), tuple(reader.problems))
    try:
        tool = find_disassembler()
    except MissingError as error:
        return CodeAtHand((), (*reader.problems, _no_disassembler(error)))
    wanted, kernels = _recorded_names(recording), []
    for code, name in reader.objects:
        try:
            kernels += _kernels(code, name, wanted, tool)
        except RplError as error:
            reader.problems.append(_unreadable(name, error))
    if not kernels and (files or recorded):
        sources = ", ".join(sorted({name for _, name in reader.objects}))
        reader.problems.append(
            Diagnostic(
                "code.no_match",
                f"the code objects at hand ({sources}) have none of the recorded kernels",
                cause="they belong to another build or another program",
                remedy="name the file that was recorded with --code-object",
            )
        )
    return CodeAtHand(tuple(kernels), tuple(reader.problems))


def _folders(recording: Recording, *, everywhere: bool) -> Iterable[Path]:
    """Folders of the recording's files. Code of a thread trace lies beside it or one level above."""
    for trace in recording.traces:
        places = dict.fromkeys(Path(path).parent for path in trace.source.paths)
        if everywhere or trace.role is TraceRole.THREAD_TRACE:
            yield from places
        if trace.role is TraceRole.THREAD_TRACE:
            yield from (place.parent for place in places)


def _uris(recording: Recording) -> list[str]:
    uris = {kernel.code_object for trace in recording.traces for kernel in trace.kernels}
    return sorted(uri for uri in uris if uri is not None)


def _recorded_names(recording: Recording) -> _Wanted:
    kernels = [kernel for trace in recording.traces for kernel in trace.kernels]
    return _Wanted(
        frozenset(kernel.symbol for kernel in kernels if kernel.symbol),
        frozenset("".join(kernel.name.split()) for kernel in kernels),
    )


def _kernels(code: CodeObject, source: str, wanted: _Wanted, tool: Path) -> list[KernelCode]:
    shown = demangled([kernel.name for kernel in code.kernels])
    names = [k.name for k in code.kernels if wanted.has(k.name, shown.get(k.name, k.name))]
    if not names:
        return []
    stated = {kernel.name: kernel for kernel in code.kernels}
    return [
        _kernel(stated[name], shown.get(name, name), code.architecture, source, instructions)
        for name, instructions in disassemble(code, tool, names).items()
    ]


def _kernel(
    kernel: Kernel, shown: str, architecture: str, source: str, instructions: Sequence[Instruction]
) -> KernelCode:
    mnemonics = [instruction.mnemonic for instruction in instructions]
    calls = _CALL in mnemonics
    return KernelCode(kernel.name, shown, architecture, source, packed_mix(mnemonics), calls, kernel)


def _unreadable(where: str, error: RplError) -> Diagnostic:
    return Diagnostic(
        "code.unreadable",
        f"no instructions from {where}: {error.fact}",
        Severity.INFO,
        cause=error.cause,
        remedy=error.next_step,
    )


def _no_disassembler(error: MissingError) -> Diagnostic:
    return Diagnostic(
        "code.no_disassembler",
        f"code objects are at hand, but their instructions are not read: {error.fact}",
        cause="without them packed arithmetic stays counted once",
        remedy=error.next_step,
    )
