"""Which objects make the program: a compile database lists those of all programs of a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_codeobject.bundles import ELF_MAGIC
from rpl_codeobject.elf_file import guarded, open_elf
from rpl_core.errors import BadDataError
from rpl_optimize.build.build_run import StepFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_optimize.build.compile_database import Entry


@attrs.frozen
class CompiledObject:
    path: Path
    entry: Entry


def objects_to_link(own: CompiledObject, others: Sequence[CompiledObject], program: str) -> list[Path]:
    """The candidate's object and all others, without those that hold the ``main`` of another program.

    Where several do and the candidate does not, ``main`` is taken from the candidate's CMake target, else
    from the target named like the program. ``StepFailedError`` when neither decides.
    """
    mains = [other for other in others if defines_main(other.path)]
    kept = [] if defines_main(own.path) else _main(mains, own, program)
    return [own.path, *(other.path for other in others if other not in mains or other in kept)]


def _main(mains: list[CompiledObject], own: CompiledObject, program: str) -> list[CompiledObject]:
    if len(mains) <= 1:
        return mains
    for target in (own.entry.target, program):
        fitting = [found for found in mains if target is not None and found.entry.target == target]
        if len(fitting) == 1:
            return fitting
    names = ", ".join(found.entry.file.name for found in mains[:5])
    raise StepFailedError(
        f"the compile database holds several programs ({names}) and does not say which one it is: "
        "give the program's own build with --build"
    )


def defines_main(path: Path) -> bool:
    """Whether an object defines ``main``; false for what is no ELF (bitcode of a link-time optimization)."""
    data = path.read_bytes()
    if not data.startswith(ELF_MAGIC):
        return False

    def look() -> bool:
        table = open_elf(data).get_section_by_name(".symtab")
        found = () if table is None else (table.get_symbol_by_name("main") or ())
        return any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in found)

    try:
        return guarded(look, path.name)
    except BadDataError as error:
        raise StepFailedError(f"the compiler wrote an object that can't be read: {error.fact}") from None
