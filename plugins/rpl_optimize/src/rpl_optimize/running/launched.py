"""Which file holds the kernels that a command launches, where no word of it does: one run is recorded.

The recording says which process launched which kernels, and often the code object's file. The dynamic linker
says which files each process mapped (``LD_DEBUG=files``, ld.so(8)); of those the one is meant that holds a
launched kernel. What no file holds was compiled while the program ran, or came out of its memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from rpl_codeobject.kernel_names import source_name
from rpl_codeobject.reading.read import read_code_objects
from rpl_core.errors import RplError, UsageError
from rpl_core.text import printable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording

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
            own = [kernel for kernel in kernels if kernel.process == process]
            pid = trace.processes[process].pid if 0 <= process < len(trace.processes) else None
            uris = (kernel.code_object or "" for kernel in own)
            files = frozenset(Path(unquote(u[7:].partition("#")[0])) for u in uris if u.startswith("file://"))
            yield Launches(pid, frozenset(kernel.name for kernel in own), files)


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
    own = [name for process in processes for name in mapped.get(process.pid or -1, ())]
    every = [name for names in mapped.values() for name in names]
    called = {Path(name).name for name in every}
    below = (path for path in _below(place) if path.name in called or path.suffix in _CODE_OBJECTS)
    wanted_names, kernels_of = {source_name(name) for name in wanted}, kernels_of or kernels_in
    for paths in (_existing(named, place), _existing(own, place), _existing(every, place), below):
        holding = sorted(
            {one.resolve() for one in paths if wanted_names & set(map(source_name, kernels_of(one)))}
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
