"""Build what PyTorch's `cpp_extension` builds: by the file for ninja that it leaves, or by `setup.py`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_core.process.launch import require_program
from rpl_optimize.interfaces.builder import Builder, BuildSystem
from rpl_optimize.projects.cmake import CACHE
from rpl_optimize.projects.found_tree import found_program, nothing_said, tree_of
from rpl_optimize.projects.project_build import project_builder
from rpl_optimize.running.mounts import why_no_mounts

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import BuildRequest

_BUILD_FILE, _SETUP = "build.ninja", "setup.py"
_PYTHON: Final = re.compile(r"python\d?(\.\d+)?$")


class NinjaBuilds(BuildSystem):
    """A ``build.ninja`` beside the program or above it, as ``torch.utils.cpp_extension.load`` writes one."""

    name = "ninja"
    summary = "The build.ninja beside or above the program."
    priority = 23

    def builder(self, request: BuildRequest) -> Builder | None:
        if not nothing_said(request) or why_no_mounts() is not None:
            return None
        program = found_program(request)
        folder = next((f for f in program.parents if (f / _BUILD_FILE).is_file()), None)
        if folder is None or (folder / CACHE).is_file():
            return None
        require_program(("ninja",))
        root = tree_of(request)
        outside = () if folder.is_relative_to(root) else (folder,)
        return project_builder(request, ("ninja", "--verbose"), root, folder, more_trees=outside)


class SetupBuilds(BuildSystem):
    """``setup.py build_ext`` for a library of Python's that lies in the project."""

    name = "setup"
    summary = "The setup.py above the source, for an extension of Python."
    priority = 21

    def builder(self, request: BuildRequest) -> Builder | None:
        if not nothing_said(request) or why_no_mounts() is not None:
            return None
        program = found_program(request)
        root = tree_of(request)
        above = (folder for folder in request.source.parents if folder.is_relative_to(root))
        folder = next((f for f in above if (f / _SETUP).is_file()), None)
        if folder is None or program.suffix != ".so" or not program.is_relative_to(folder):
            return None
        first = request.command[0]
        python = first if _PYTHON.search(Path(first).name) else "python3"
        require_program((python,))
        beside = () if program.is_relative_to(folder / "build") else ("--inplace",)
        return project_builder(request, (python, _SETUP, "build_ext", *beside), root, folder)
