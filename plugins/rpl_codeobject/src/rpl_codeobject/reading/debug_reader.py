"""Read where kernels were written from the DWARF of one ELF, in a process of its own; see ``debug_info``.

A damaged or hostile file can make any DWARF reader count to 2**64 or fill the memory, so this runs as a
program with limits of its own, and imports nothing of rpl. Reads the ELF at the path in ``argv[2]``, or from
standard input for ``-``; ``argv[1]`` is the parent's module path as JSON. Writes one JSON object:
``{"kernels": {symbol: [path, line]}, "units": [path]}``, or with "lines" as ``argv[3]``
``{"lines": [[begin, end, path, line]]}``.
"""

from __future__ import annotations

import io
import itertools
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

#: Far above what real programs need (chosen): seconds of CPU time, bytes of memory, entries of the answer.
CPU_LIMIT_S = 20
_MEMORY_BYTES = 2 << 30
_MAX_ENTRIES = 4096
_MAX_ROWS = 200_000
#: Linux' PATH_MAX.
_MAX_PATH = 4096
_DESCRIPTOR_SUFFIX = ".kd"


def main() -> None:
    """Entry point of the process."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    sys.path[:] = json.loads(sys.argv[1])
    read = read_lines if sys.argv[3] == "lines" else read_tables
    if sys.argv[2] == "-":
        answer = read(io.BytesIO(sys.stdin.buffer.read()))
    else:
        with open(sys.argv[2], "rb") as stream:  # noqa: PTH123 - one file, opened once
            answer = read(stream)
    print(json.dumps(answer))


def read_tables(stream: Any) -> dict[str, Any]:
    """Where the kernels are declared, and the main files of all compile units.

    With ``-gline-tables-only`` no declarations are described: then it is the place of a kernel's first
    instruction, which may come from a function that was inlined there.
    """
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(stream)
    kernels: dict[str, list[Any]] = {}
    units: dict[str, None] = {}
    if not elf.has_dwarf_info(strict=True):
        return {"kernels": kernels, "units": []}
    # Links to other files of debug information are a stranger's paths: they are not followed.
    dwarf = elf.get_dwarf_info(follow_links=False)
    wanted = _kernel_entries(elf)
    for number, unit in enumerate(dwarf.iter_CUs()):
        if number >= _MAX_ENTRIES:
            break
        top = unit.get_top_DIE()
        folder = _string_attribute(top, "DW_AT_comp_dir")
        units[_joined(folder, _string_attribute(top, "DW_AT_name"))] = None
        program = dwarf.line_program_for_CU(unit) if wanted else None
        if program is not None:
            kernels.update(_first_rows(program, folder, wanted))
            kernels.update(_declarations(unit, program, folder, frozenset(wanted.values())))
    return {"kernels": kernels, "units": sorted(units)}


def read_lines(stream: Any) -> dict[str, Any]:
    """Ranges of addresses with the line that they come from; what the compiler added (line 0) has none."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(stream)
    rows: list[list[Any]] = []
    if elf.has_dwarf_info(strict=True):
        dwarf = elf.get_dwarf_info(follow_links=False)
        for _, unit in zip(range(_MAX_ENTRIES), dwarf.iter_CUs(), strict=False):
            program = dwarf.line_program_for_CU(unit)
            if program is not None:
                folder = _string_attribute(unit.get_top_DIE(), "DW_AT_comp_dir")
                rows.extend(itertools.islice(_ranges(program, folder), _MAX_ROWS - len(rows)))
    return {"lines": rows}


def _ranges(program: Any, folder: str) -> Iterator[list[Any]]:
    before = None
    for entry in program.get_entries():
        row = entry.state
        if row is None:
            continue
        if before is not None and before.line and not before.end_sequence and before.address < row.address:
            path = _file(program, before.file, folder)
            if path is not None:
                yield [before.address, row.address, path, before.line]
        before = row


def _kernel_entries(elf: Any) -> dict[int, str]:
    """Address of the first instruction -> symbol of the descriptor; none for files that are not linked."""
    table = elf.get_section_by_name(".dynsym")
    if table is None or elf["e_type"] == "ET_REL":
        return {}
    addresses = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}
    symbols = [name for name in addresses if name.endswith(_DESCRIPTOR_SUFFIX)][:_MAX_ENTRIES]
    symbol_at = {addresses.get(name.removesuffix(_DESCRIPTOR_SUFFIX)): name for name in symbols}
    return {address: name for address, name in symbol_at.items() if address is not None}


def _declarations(
    unit: Any, program: Any, folder: str, wanted: frozenset[str]
) -> Iterator[tuple[str, list[Any]]]:
    for entry in unit.iter_DIEs():
        if entry.tag != "DW_TAG_subprogram":
            continue
        symbol = (
            _string_attribute(entry, "DW_AT_linkage_name") or _string_attribute(entry, "DW_AT_name")
        ) + _DESCRIPTOR_SUFFIX
        file, line = (entry.attributes.get(f"DW_AT_decl_{what}") for what in ("file", "line"))
        if symbol in wanted and file is not None and line is not None:
            path = _file(program, file.value, folder)
            if path is not None:
                yield symbol, [path, line.value]


def _first_rows(program: Any, folder: str, wanted: dict[int, str]) -> Iterator[tuple[str, list[Any]]]:
    seen: set[int] = set()
    for entry in program.get_entries():
        row = entry.state
        if row is None or row.end_sequence or row.address in seen or row.address not in wanted:
            continue
        seen.add(row.address)
        path = _file(program, row.file, folder)
        if path is not None:
            yield wanted[row.address], [path, row.line]


def _file(program: Any, number: int, folder: str) -> str | None:
    # DWARF 5 counts files and directories from 0, and directory 0 is the compiler's; earlier ones from 1.
    first = 0 if program["version"] >= 5 else 1
    files, folders = program["file_entry"], program["include_directory"]
    if not 0 <= number - first < len(files):
        return None
    entry = files[number - first]
    place = entry.dir_index - first
    inner = _decoded(folders[place]) if 0 <= place < len(folders) else ""
    return _joined(folder, inner, _decoded(entry.name))


def _string_attribute(entry: Any, attribute: str) -> str:
    value = entry.attributes.get(attribute)
    return "" if value is None or not isinstance(value.value, bytes) else _decoded(value.value)


def _decoded(value: bytes) -> str:
    return value[:_MAX_PATH].decode("utf-8", "surrogateescape")


def _joined(*parts: str) -> str:
    return str(PurePosixPath(*parts))


if __name__ == "__main__":
    main()
