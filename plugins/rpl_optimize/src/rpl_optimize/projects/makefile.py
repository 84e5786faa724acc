"""Build with make where a makefile makes the program."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_core.errors import RplError, UsageError
from rpl_core.process.launch import require_program
from rpl_optimize.build.compile_database import find_database, read_database
from rpl_optimize.build.template_build import is_header
from rpl_optimize.interfaces.builder import Builder, BuildSystem
from rpl_optimize.projects.cmake import CACHE
from rpl_optimize.projects.found_tree import found_program, nothing_said, tree_of
from rpl_optimize.projects.project_build import project_builder

if TYPE_CHECKING:
    from rpl_optimize.build.compile_database import Entry
    from rpl_optimize.interfaces.builder import BuildRequest

#: In the order in which make looks for them (GNU make's manual, "What Name to Give Your Makefile").
_NAMES: Final = ("GNUmakefile", "makefile", "Makefile")
_MOST_BYTES: Final = 4 << 20


class MakeBuilds(BuildSystem):
    """The makefile that names the program, in the working directory or above program or source."""

    name = "make"
    summary = "The makefile that names the program."
    priority = 22

    def builder(self, request: BuildRequest) -> Builder | None:
        if not nothing_said(request):
            return None
        program = found_program(request)
        root = tree_of(request)
        above = Path(os.path.commonpath((root, program)))
        if request.project is None and not program.is_relative_to(root) and _text(above):
            root = above  # the user stands in the directory of what is built, beside that of the source
        folder = _folder(request, program, root)
        if folder is None:
            return None
        require_program(("make",))
        entries = _entries(request) if is_header(request.source) else ()
        # Without anybody who knows what includes a header, everything is built anew.
        anew = ("-B",) if is_header(request.source) and not entries else ()
        words = ("make", *anew, *_target(folder, program))
        return project_builder(request, words, root, folder, entries=entries)


def _folder(request: BuildRequest, program: Path, root: Path) -> Path | None:
    """Raises ``UsageError`` where several makefiles name the program and none is where the user is."""
    if not program.is_relative_to(root):
        return None
    place = request.place.resolve()
    above = (*program.parents, *request.source.parents)
    folders = dict.fromkeys(folder for folder in (place, *above) if folder.is_relative_to(root))
    makers = [folder for folder in folders if _names(folder, program)]
    if len(makers) > 1 and makers[0] != place:
        names = ", ".join(os.path.relpath(folder, place) for folder in makers)
        raise UsageError(
            f"the makefiles of several directories name {program.name}: {names}",
            next_step=f"choose one: --build 'make -C {os.path.relpath(makers[0], place)}'",
        )
    return makers[0] if makers else None


def _text(folder: Path) -> str:
    """The makefile of a directory; nothing for one that CMake wrote."""
    if (folder / CACHE).is_file():
        return ""
    for name in _NAMES:
        try:
            with (folder / name).open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
    return ""


def _names(folder: Path, program: Path) -> bool:
    name = re.escape(program.name)
    return re.search(rf"(?<![\w.+-]){name}(?![\w.+-])", _text(folder)) is not None


def _target(folder: Path, program: Path) -> tuple[str, ...]:
    """The program, where a rule is written for it in full; else what make makes of itself."""
    below = os.path.relpath(program, folder)
    for name in (below, f"./{below}"):
        if re.search(
            rf"^(?:[^#\t\n=]*\s)?{re.escape(name)}(?:\s[^=\n]*)?:(?!=)", _text(folder), re.MULTILINE
        ):
            return (name,)
    return ()


def _entries(request: BuildRequest) -> tuple[Entry, ...]:
    database = find_database(request.source)
    try:
        return () if database is None else read_database(database)
    except RplError:
        return ()
