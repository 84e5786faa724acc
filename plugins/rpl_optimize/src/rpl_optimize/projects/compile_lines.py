"""The compilations of a build, out of the lines that make, ninja and CMake print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_optimize.interfaces.builder import Compilation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Those that compile HIP; a launcher such as ccache may stand before them.
_COMPILER: Final = re.compile(r"(?:^|/)(?:hipcc|amdclang\+\+|clang\+\+|clang)(?:-\d+)?$")
_ENTERING: Final = re.compile(r"^\w+(?:\[\d+\])?: (Entering|Leaving) directory '(.+)'$")
_PROGRESS: Final = re.compile(r"^\[\s*\d+[/%]\s*\d*\]\s*")
_UNITS: Final = (".hip", ".cu", ".cpp", ".cc", ".cxx", ".C")


def compilations(lines: Iterable[str], place: Path) -> Iterator[Compilation]:
    """Commands that compile a source, with the directories in which they ran; ``place`` is the first one."""
    places = [place]
    for line in lines:
        if match := _ENTERING.match(line):
            places = [*places, Path(match[2])] if match[1] == "Entering" else places[:-1] or [place]
            continue
        for words, folder in _commands(_PROGRESS.sub("", line), places[-1]):
            if any(word.endswith(_UNITS) for word in words[1:]):
                yield Compilation(words, folder)


def _commands(line: str, place: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """The compilers' commands of one line, which a shell read: ``cd build && hipcc -c x.hip``."""
    try:
        words = shlex.split(line)
    except ValueError:
        return
    command: list[str] = []
    for word in (*words, "&&"):
        if word not in ("&&", ";"):
            command.append(word)
            continue
        if command[:1] == ["cd"] and len(command) == 2:
            place = place / command[1]
        start = next((i for i, part in enumerate(command[:3]) if _COMPILER.search(part)), None)
        if start is not None:
            yield tuple(command[start:]), place
        command = []
