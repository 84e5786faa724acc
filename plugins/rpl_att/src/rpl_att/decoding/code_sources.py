"""Finds the instructions of the traced code beside raw traces: code objects, or tables of instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rpl_att.decoding.job import CodeSource
from rpl_att.reading.raw_files import files_in
from rpl_codeobject.disassembly import find_disassembler
from rpl_core.errors import MissingError

_TABLE = re.compile(r"isa_code_object_(?P<id>\d{1,9})\.json")
_RAW_TABLE = "isa_raw_address.json"
#: ``<prefix>_<gfx>_code_object_id_<id>.out`` (att.md, 1).
_OBJECT = re.compile(r"(?:.*_)?code_object_id_(?P<id>\d{1,9})\.out")
_ROCM_TOOL = Path("llvm", "bin", "llvm-objdump")


def code_sources(folder: Path, environment: Mapping[str, str]) -> dict[int, CodeSource]:
    """Code object id -> source, from ``folder`` and the one above it; 0 stands for absolute addresses.

    A table is preferred to a code object, and what lies nearer to what lies above. Raises
    ``MissingError`` if there are code objects and nothing to disassemble them with.
    """
    found: dict[int, CodeSource] = {}
    objects: dict[int, Path] = {}
    for place in (folder, folder.resolve().parent):
        for path in files_in(place):
            if path.name == _RAW_TABLE:
                found.setdefault(0, CodeSource(path))
            elif match := _TABLE.fullmatch(path.name):
                found.setdefault(int(match["id"]), CodeSource(path))
            elif match := _OBJECT.fullmatch(path.name):
                objects.setdefault(int(match["id"]), path)
    wanted = {number: path for number, path in objects.items() if number not in found}
    tool = disassembler(environment) if wanted else None
    return {**found, **{number: CodeSource(path, tool) for number, path in wanted.items()}}


def disassembler(environment: Mapping[str, str]) -> Path:
    """llvm-objdump of ``ROCM_PATH``, else the one that the rest of rpl uses."""
    rocm = environment.get("ROCM_PATH")
    if rocm and (Path(rocm) / _ROCM_TOOL).is_file():
        return (Path(rocm) / _ROCM_TOOL).absolute()
    try:
        return find_disassembler().absolute()
    except MissingError as error:
        raise MissingError(
            f"{error.fact}: it reads the instructions in the code objects beside the trace",
            next_step=error.next_step,
        ) from None
