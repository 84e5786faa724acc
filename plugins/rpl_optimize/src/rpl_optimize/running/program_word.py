"""Which file of the user's command is the one that is built, and putting another one in its place."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from rpl_codeobject.kernel_names import source_name
from rpl_codeobject.reading import read_code_objects
from rpl_core.errors import MissingError, RplError, UsageError
from rpl_core.text import printable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording

#: A launcher's command line is short; later words are the application's own data.
_MAX_WORDS = 64
_RUNS_OTHERS = (b"\x7fELF", b"#!")
_NAME_IT = "name the program, library or code object that is built with --binary FILE"


@frozen
class Program:
    """``path`` is absolute; ``words`` are the places in the command that mean it.

    Without such a word ``place`` is the working directory to which the command's paths are relative.
    """

    path: Path
    words: tuple[int, ...]
    place: Path | None = None

    def replaced(self, command: Sequence[str], built: Path) -> tuple[str, ...]:
        """``command`` with ``built`` for the program; every other word stays what the user wrote."""
        if not self.words:
            return mounted(command, ((built.absolute(), self.path),), self.place)
        return tuple(str(built) if i in self.words else word for i, word in enumerate(command))


def find_program(
    command: Sequence[str], binary: Path | None, place: Path, holds: Callable[[Path], bool] | None = None
) -> Program:
    """The program that the build makes: ``binary``, else the first word.

    Where the first word is there and holds no device code (``mpirun``, ``python``), the only other word
    that names a file with device code; what only starts other programs is never replaced. ``place`` is the
    working directory. ``holds`` tells device code, AMD's without it. Raises ``UsageError`` when nothing or
    several could be meant, ``MissingError`` for a file that no word names where none can be mounted.
    """
    if not command or not command[0]:
        raise UsageError("no application was given")
    if binary is not None:
        return _program_in(command, _absolute(binary, place), place)
    first = _program_path(command[0], place)
    holds = holds or holds_code_objects
    if not first.exists() or holds(first):
        return Program(first, _words(command, first, place))
    others = {path for word in command[1:_MAX_WORDS] if holds(path := place / word)}
    if len(others) > 1:
        names = ", ".join(sorted(str(path) for path in others))
        raise UsageError(f"several words of the command hold device code: {names}", next_step=_NAME_IT)
    if not others and _runs_others(first):
        raise UsageError(f"{first} holds no device code, so it is not what is built", next_step=_NAME_IT)
    chosen = _absolute(others.pop(), place) if others else first
    return Program(chosen, _words(command, chosen, place))


def names_program(command: Sequence[str], place: Path, holds: Callable[[Path], bool]) -> bool:
    """Whether a word of the command is the program, so that nobody needs to look what the command starts."""
    first = _program_path(command[0], place)
    if not first.exists() or not _runs_others(first):
        return True
    return any(map(holds, (first, *(place / word for word in command[1:_MAX_WORDS]))))


def _program_in(command: Sequence[str], program: Path, place: Path) -> Program:
    words = _words(command, program, place)
    if words:
        return Program(program, words)
    if not program.is_file():
        raise UsageError(
            f"the command does not name {program}, and there is no such file for a built one to stand in for",
            next_step="build it once, or give the command as it runs that file, or another --binary",
        )
    require_mounts(f"the command does not name {program}", "give the command as it runs that file")
    return Program(program, (), place)


def _words(command: Sequence[str], program: Path, place: Path) -> tuple[int, ...]:
    return tuple(
        i
        for i, word in enumerate(command)
        if word and _same((_program_path(word, place) if i == 0 else place / word), program)
    )


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _program_path(word: str, place: Path) -> Path:
    if os.sep not in word and (program := shutil.which(word)) is not None:
        return _absolute(Path(program), place)
    return _absolute(Path(word), place)


def _absolute(path: Path, place: Path) -> Path:
    # Not resolved: in a project the link's own place counts, not where it leads.
    return Path(os.path.normpath(place / path))


def holds_code_objects(path: Path) -> bool:
    """Whether a file holds device code of AMD."""
    try:
        return path.is_file() and bool(read_code_objects(path))
    except MissingError:  # no decoder for what is packed there
        return True
    except (RplError, OSError, ValueError):
        return False


def _runs_others(path: Path) -> bool:
    """Whether it is a finished program or a script, and not what an earlier build left."""
    try:
        with path.open("rb") as file:
            return file.read(4).startswith(_RUNS_OTHERS)
    except OSError:
        return False


# Let a command see a built file in the place of the user's own, which stays as it is.
#
# For what no word of the command names: the shared library of a Python driver, the program that a script
# starts, a project's tree that its build files name by absolute paths.

_PROGRAM: Final = str(Path(__file__).with_name("mount_and_run.py"))
_PROBE_S: Final = 20.0


def mounted(
    command: Sequence[str], pairs: Sequence[tuple[Path, Path]], place: Path | None = None
) -> tuple[str, ...]:
    """``command`` with the first of each pair at the second one's place.

    ``place``: the working directory to which the command's relative paths belong, wherever it is run.
    """
    words = [str(path) for pair in pairs for path in pair]
    known = () if place is None else ("--place", str(place))
    return (sys.executable, "-I", "-S", _PROGRAM, *known, *words, "--", *command)


@cache
def why_no_mounts() -> str | None:
    """Why this machine mounts nothing for a command of a user, or ``None``. Tried once."""
    with tempfile.TemporaryDirectory(prefix="rpl-mount-") as scratch:
        over, at = Path(scratch, "over"), Path(scratch, "at")
        over.write_text("seen", encoding="ascii")
        at.write_text("", encoding="ascii")
        command = mounted(("cat", str(at)), ((over, at),))
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.stdout == b"seen":
        return None
    return done.stderr.decode("utf-8", "replace").strip()[:200] or f"it ended with {done.returncode}"


def require_mounts(what: str, next_step: str) -> None:
    """``MissingError`` where ``what`` needs a mount and this machine allows none."""
    why = why_no_mounts()
    if why is not None:
        raise MissingError(
            f"{what}, and this machine lets nobody put a built file in its place",
            cause=why,
            next_step=next_step,
        )


# Which file holds the kernels that a command launches, where no word of it does: one run is recorded.
#
# The recording says which process launched which kernels, and often the code object's file. The dynamic
# linker says which files each process mapped (``LD_DEBUG=files``, ld.so(8)); of those the one is meant that
# holds a launched kernel. What no file holds was compiled while the program ran, or came out of its memory.

_LOG: Final = "mapped"
_MAPPED: Final = re.compile(r"^\s*\d+:\s+(?:calling init|initialize program): (.+)$")
_MOST_LOG_BYTES: Final = 64 << 20
#: Libraries of the system and of ROCm are not the user's to change.
_FOREIGN: Final = (Path("/usr"), Path("/opt"), Path("/lib"), Path("/lib64"))
#: Files with device code alone, as ``hipModuleLoad`` takes them.
_CODE_OBJECTS: Final = (".co", ".hsaco", ".hipfb", ".fatbin", ".code")
_MOST_FILES: Final = 20_000


@frozen
class Launches:
    """What one process launched: names of kernels, as displayed, and the files that the profiler names."""

    pid: int | None
    kernels: frozenset[str]
    files: frozenset[Path]


@frozen
class KernelFile:
    """``path`` is the file with the kernels, ``None`` where no file holds ``kernels``."""

    path: Path | None
    kernels: tuple[str, ...]


def find_launched(
    command: Sequence[str],
    place: Path,
    source: bytes | None,
    scratch: Path,
    record: Callable[[tuple[str, ...]], Recording],
    kernels_of: Callable[[Path], Iterable[str]] | None = None,
) -> KernelFile:
    """``record`` runs and records a command once; with ``source`` only kernels that it names count.

    ``kernels_of`` names the kernels that a file holds, AMD's without it.

    Raises ``UsageError`` where several files hold launched kernels, or none was launched.
    """
    log = scratch / _LOG
    variables = ("LD_DEBUG=files", f"LD_DEBUG_OUTPUT={log}", "HSA_LOADER_ENABLE_MMAP_URI=1")
    processes = tuple(launches_of(record(("env", *variables, *command))))
    return choose_file(processes, mapped_files(log), place, source, kernels_of or kernels_in)


def launches_of(recording: Recording) -> Iterator[Launches]:
    """By process, out of all traces."""
    for trace in recording.traces:
        used = {int(index) for index in trace.dispatches.kernel}
        kernels = [kernel for index, kernel in enumerate(trace.kernels) if index in used]
        for process in sorted({kernel.process for kernel in kernels}):
            of_process = [kernel for kernel in kernels if kernel.process == process]
            pid = trace.processes[process].pid if 0 <= process < len(trace.processes) else None
            uris = (kernel.code_object or "" for kernel in of_process)
            files = frozenset(Path(unquote(u[7:].partition("#")[0])) for u in uris if u.startswith("file://"))
            yield Launches(pid, frozenset(kernel.name for kernel in of_process), files)


def mapped_files(log: Path) -> dict[int, list[str]]:
    """Per process, what the linker says that it mapped, by the names that it used."""
    mapped: dict[int, list[str]] = {}
    for path in sorted(log.parent.glob(f"{log.name}.*")):
        pid = path.name.rpartition(".")[2]
        if pid.isdecimal():
            with path.open("rb") as file:
                lines = file.read(_MOST_LOG_BYTES).decode("utf-8", "surrogateescape").splitlines()
            names = (match[1] for line in lines if (match := _MAPPED.match(line)))
            mapped[int(pid)] = list(dict.fromkeys(names))
    return mapped


def choose_file(
    processes: Sequence[Launches],
    mapped: dict[int, list[str]],
    place: Path,
    source: bytes | None,
    kernels_of: Callable[[Path], Iterable[str]] | None = None,
) -> KernelFile:
    """The one file that holds kernels of ``processes``; see ``find_launched``."""
    launched = {name for process in processes for name in process.kernels}
    wanted = {name for name in launched if source is None or source_name(name).encode() in source}
    if not wanted:
        known = ", ".join(sorted(map(source_name, launched))) or "none"
        raise UsageError(
            "the command launches no kernel of the source" if launched else "the command launches no kernel",
            cause=f"kernels that it launches: {known}",
            next_step="check the command, or name the source with --source FILE",
        )
    named = [str(path) for process in processes for path in process.files]
    mapped_here = [name for process in processes for name in mapped.get(process.pid or -1, ())]
    every = [name for names in mapped.values() for name in names]
    called = {Path(name).name for name in every}
    below = (path for path in _below(place) if path.name in called or path.suffix in _CODE_OBJECTS)
    wanted_names, kernels_of = {source_name(name) for name in wanted}, kernels_of or kernels_in
    for paths in (_existing(named, place), _existing(mapped_here, place), _existing(every, place), below):
        holding = sorted(
            {path.resolve() for path in paths if wanted_names & set(map(source_name, kernels_of(path)))}
        )
        if len(holding) > 1:
            raise _several(holding)
        if holding:
            return KernelFile(holding[0], tuple(sorted(wanted)))
    return KernelFile(None, tuple(sorted(wanted)))


def _existing(names: Iterable[str], place: Path) -> Iterator[Path]:
    for name in names:
        path = Path(os.path.normpath(place / name))
        if path.is_file() and not any(path.is_relative_to(folder) for folder in _FOREIGN):
            yield path


def _below(place: Path) -> Iterator[Path]:
    """Files of the working directory: a script may go elsewhere first, and ``hipModuleLoad`` is not seen."""
    seen = 0
    for folder, _, names in os.walk(place):
        seen += len(names)
        if seen > _MOST_FILES:
            return
        yield from (Path(folder, name) for name in names)


def kernels_in(path: Path) -> tuple[str, ...]:
    """Names of the kernels in the AMD code objects of a file; none where there are no such."""
    try:
        codes = read_code_objects(path)
    except (RplError, OSError):
        return ()
    return tuple(kernel.name for code in codes for kernel in code.kernels)


def _several(holding: Sequence[Path]) -> UsageError:
    names = ", ".join(printable(str(path)) for path in holding)
    return UsageError(
        f"several files hold kernels that the command launches: {names}",
        next_step="name the one that is built with --binary FILE",
    )
