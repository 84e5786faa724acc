"""What lies beside raw traces: the instructions of the traced code, and where that code was loaded.

Instructions are in code objects or in tables. A trace without markers has absolute addresses; an address
minus the load delta is the one in the ELF.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import ijson

from rpl_att.decoding.job import CodeSource, Load
from rpl_att.reading.raw_files import files_in, process_prefix
from rpl_codeobject.instructions.disassembly import find_disassembler
from rpl_core.errors import BadDataError, MissingError

_TABLE = re.compile(r"isa_code_object_(?P<id>\d{1,9})\.json")
_RAW_TABLE = "isa_raw_address.json"
#: ``<prefix>_<gfx>_code_object_id_<id>.out`` (docs/reference/thread-trace.md, 2.1).
_OBJECT = re.compile(r"(?:.*_)?code_object_id_(?P<id>\d{1,9})\.out")
_LOADED = "rocprofiler-sdk-tool.item.code_objects.item"
_MAX_LOADED = 1_000_000
_ROCM_TOOL = Path("llvm", "bin", "llvm-objdump")


def code_sources(folder: Path, environment: Mapping[str, str]) -> dict[int, CodeSource]:
    """Code object id -> source, from ``folder`` and the one above it; 0 stands for absolute addresses.

    A table is preferred to a code object, and what lies nearer to what lies above. Raises
    ``MissingError`` if there are code objects and nothing to disassemble them with.
    """
    sources: dict[int, CodeSource] = {}
    objects: dict[int, Path] = {}
    for place in (folder, folder.resolve().parent):
        for path in files_in(place):
            if path.name == _RAW_TABLE:
                sources.setdefault(0, CodeSource(path))
            elif match := _TABLE.fullmatch(path.name):
                sources.setdefault(int(match["id"]), CodeSource(path))
            elif match := _OBJECT.fullmatch(path.name):
                objects.setdefault(int(match["id"]), path)
    wanted = {number: path for number, path in objects.items() if number not in sources}
    tool = disassembler(environment) if wanted else None
    return {**sources, **{number: CodeSource(path, tool) for number, path in wanted.items()}}


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


def read_loads(trace: Path) -> tuple[Load, ...]:
    """Loads in the results of the process that recorded ``trace``, which lie beside it; empty without.

    Raises ``BadDataError`` for results that can't be read: addresses must not be guessed.
    """
    path = trace.parent / f"{process_prefix(trace.name)}results.json"
    if path.is_symlink() or not path.is_file():
        return ()
    loads = []
    with path.open("rb") as stream:
        try:
            for number, entry in enumerate(ijson.items(stream, _LOADED, use_float=True)):
                if number >= _MAX_LOADED:
                    raise BadDataError(f"{path.name} names more than {_MAX_LOADED} code objects")
                load = _load(entry)
                if load is not None:
                    loads.append(load)
        except (ijson.JSONError, ValueError, RecursionError) as error:
            raise BadDataError(f"{path.name} is not valid JSON: {error}") from None
    return tuple(sorted(loads))


def _load(entry: object) -> Load | None:
    """``None`` for an entry without the numbers. ``load_delta`` is the load base where it is not told:
    AMD's code objects are linked at address 0 (AMDGPUUsage, "Code Object").
    """
    if not isinstance(entry, dict):
        return None
    number, base, size = (entry.get(name) for name in ("code_object_id", "load_base", "load_size"))
    delta = entry.get("load_delta", base)
    if isinstance(number, int) and isinstance(base, int) and isinstance(size, int) and isinstance(delta, int):
        return Load(base, size, delta, number)
    return None
