"""The tree of a project that nobody named, and whether anybody said how it is built."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_optimize.projects.project_build import enclosing_tree, program_place
from rpl_optimize.running.program_word import find_program

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import BuildRequest


def nothing_said(request: BuildRequest) -> bool:
    """Whether the user leaves it open how the program is built."""
    return request.build_command is None and request.compile_database is None and not request.link_flags


def found_program(request: BuildRequest) -> Path:
    """Where the program lies that is built. Raises as ``find_program`` does."""
    return program_place(find_program(request.command, request.binary, request.place).path)


def tree_of(request: BuildRequest, *more: Path) -> Path:
    """``--project``, else the tree around the source, with ``more`` where that is no whole part of a disk."""
    if request.project is not None:
        return request.project.resolve()
    tree = enclosing_tree(request.source, request.place.resolve())
    above = Path(os.path.commonpath((tree, *more)))
    return above if above == tree or above in more else tree
