"""The static instructions of one code object, from a JSON table or from LLVM's disassembler.

The disassembler reads the code object that the profiler left beside the trace; nothing of it is executed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from rpl_att.reading.folder import MAX_TABLE_BYTES, parse_json
from rpl_att.reading.json_values import mapping, rows, text, whole
from rpl_core.errors import BadDataError
from rpl_core.files.bounded import read_regular
from rpl_core.values import frozen

_SYMBOL = re.compile(r"(?P<address>[0-9a-f]{8,16}) <(?P<name>.+)>:")
#: ``s_branch 56  // 0000000016C0: BF820038 <kernel+0x100>``; one word of the code per group of eight.
_LINE = re.compile(
    r"\s+(?P<text>[a-z][\w.]*\b.*?)\s*// (?P<address>[0-9A-F]{8,16}):(?P<words>(?: [0-9A-F]{8})+)(?: <.*>)?"
)
#: ``; /path/kernel.hip:12``, written by --line-numbers where the code has debug information.
_SOURCE = re.compile(r"; (?P<source>.+:\d+)")
_BYTES_PER_WORD = 4


@frozen
class Instruction:
    """``source`` is ``file:line`` or empty; ``size_bytes`` is the encoded length."""

    text: str
    size_bytes: int
    source: str = ""


@frozen(eq=False)
class Listing:
    """Instructions by address, and the symbols that begin at some of the addresses."""

    instructions: dict[int, Instruction]
    symbols: dict[int, str]


def read_table(path: Path) -> Listing:
    """``{"0x1600": ["s_nop 0", 4], ...}``: hexadecimal address to text and size in bytes."""
    instructions = {}
    table = parse_json(read_regular(path, MAX_TABLE_BYTES), path)
    for key, value in mapping(table, path, "the document").items():
        entry = rows(value, path, key)
        if len(entry) != 2:
            raise BadDataError(f"{path}: {key[:60]!r} has not a text and a size")
        instructions[_address(key, path)] = Instruction(text(entry[0], path, key), whole(entry[1], path, key))
    return Listing(dict(sorted(instructions.items())), {})


def _address(key: str, path: Path) -> int:
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", key):
        raise BadDataError(f"{path}: {key[:60]!r} is no hexadecimal address")
    return int(key, 16)


def disassembled(tool: Path, code_object: Path) -> Listing:
    """The listing of ``code_object`` by ``tool`` (llvm-objdump). Raises ``BadDataError`` if it refuses."""
    command = [str(tool), "--disassemble", "--line-numbers", str(code_object.absolute())]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        listing = parse_disassembly(process.stdout)
    if process.returncode != 0 or not listing.instructions:
        raise BadDataError(f"{tool.name} found no instructions in {code_object.name}")
    return listing


def parse_disassembly(lines: Iterable[str]) -> Listing:
    """The listing in the output of ``llvm-objdump --disassemble --line-numbers``."""
    instructions: dict[int, Instruction] = {}
    symbols: dict[int, str] = {}
    source = ""
    for line in lines:
        stripped = line.rstrip("\n")
        if match := _LINE.fullmatch(stripped):
            size = len(match["words"].split()) * _BYTES_PER_WORD
            instructions[int(match["address"], 16)] = Instruction(match["text"], size, source)
        elif match := _SYMBOL.fullmatch(stripped):
            symbols[int(match["address"], 16)] = match["name"]
            source = ""
        elif match := _SOURCE.fullmatch(stripped):
            source = match["source"]
    return Listing(dict(sorted(instructions.items())), symbols)
