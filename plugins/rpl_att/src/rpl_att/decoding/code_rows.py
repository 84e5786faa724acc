"""The rows of the code table that is being written: every instruction of each code object that was met.

Row numbers are given when a code object is first met, so that waves can be written while decoding goes on.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rpl_att.decoding.job import CodeSource, Load
from rpl_att.reading.folder import MAX_TABLE_BYTES, mapping, parse_json, rows, text, whole
from rpl_att.reading.json_arrays import Rows
from rpl_att.reduction.line_totals import LineTotals
from rpl_core.errors import BadDataError
from rpl_core.files.bounded import read_regular
from rpl_core.values import frozen

# The static instructions of one code object, from a JSON table or from LLVM's disassembler.


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


#: Row 0 stays free: an instruction with line 0 is one that was not resolved
#: (docs/reference/thread-trace.md, 2.3).
_FIRST_LINE = 1


class CodeRows:
    """``missing`` says why code objects could not be listed; ``unknown`` counts addresses asked in vain."""

    def __init__(self, sources: Mapping[int, CodeSource], loads: Sequence[Load] = ()) -> None:
        self.missing: dict[int, str] = {}
        self.unknown: Counter[int] = Counter()
        self._sources = sources
        self._loads = loads
        self._lines: dict[int, dict[int, int]] = {}
        self._listings: dict[int, Listing] = {}
        self._rows: list[list[Any]] = []
        self._totals = LineTotals.zero(0)

    def instruction(self, code_object: int, address: int) -> tuple[str, int] | None:
        """Text and size for the decoder, or ``None``."""
        code_object, address = self.located(code_object, address)
        listing = self._listing(code_object)
        listed = listing.instructions.get(address) if listing else None
        if listed is None:
            self.unknown[code_object] += 1
            return None
        return listed.text, listed.size_bytes

    def lines(self, pcs: NDArray[Any]) -> NDArray[np.int64]:
        """Row number of each program counter, 0 where it is unknown."""
        unique, inverse = np.unique(pcs, return_inverse=True)
        numbers = [self._line(int(pc["code_object"]), int(pc["address"])) for pc in unique]
        return np.array(numbers, np.int64)[inverse.reshape(-1)]

    def add(self, block: Rows, idle: NDArray[np.int64]) -> None:
        """Add a wave's instructions (columns of wave files) to the sums of their rows."""
        known = block[:, 4] > 0
        size = len(self._rows)
        if size != len(self._totals.hit) - 1:
            self._totals = _grown(self._totals, size)
        self._totals.add(block[known, 4] - _FIRST_LINE, block[known], idle[known])

    def table(self) -> list[list[Any]]:
        """Rows of ``code.json`` for every symbol that was touched, in order of their numbers."""
        totals = _grown(self._totals, len(self._rows))
        sums = np.stack((totals.hit, totals.latency, totals.stall, totals.idle), axis=1)
        hit = totals.hit[:-1] > 0
        chosen = [place for block in self._blocks() if hit[block].any() for place in _shown(block, hit, self)]
        return [[*self._rows[place], *sums[place].tolist()] for place in chosen]

    def is_label(self, place: int) -> bool:
        return str(self._rows[place][0]).startswith("; ")

    def located(self, code_object: int, address: int) -> tuple[int, int]:
        """Code object and ELF address; an absolute address in none of the loaded objects stays one."""
        if code_object == 0:
            for load in self._loads:
                if load.base <= address < load.base + load.size:
                    return load.number, address - load.delta
        return code_object, address

    def _line(self, code_object: int, address: int) -> int:
        if not address:
            return 0  # the decoder matched the token to no instruction
        code_object, address = self.located(code_object, address)
        self._listing(code_object)
        return self._lines.get(code_object, {}).get(address, 0)

    def _listing(self, code_object: int) -> Listing | None:
        if code_object in self._listings:
            return self._listings[code_object]
        if code_object in self.missing:
            return None
        try:
            listing = _listed(self._sources.get(code_object), code_object)
        except BadDataError as error:
            self.missing[code_object] = error.one_line()
            return None
        self._listings[code_object] = listing
        self._number(code_object, listing)
        return listing

    def _number(self, code_object: int, listing: Listing) -> None:
        lines = self._lines[code_object] = {}
        for address, instruction in listing.instructions.items():
            if address in listing.symbols:
                label = Instruction(f"; {listing.symbols[address]}", 0, listing.symbols[address])
                self._append(code_object, address, label)
            lines[address] = self._append(code_object, address, instruction)

    def _append(self, code_object: int, address: int, row: Instruction) -> int:
        line = len(self._rows) + _FIRST_LINE
        self._rows.append([row.text, 0, line, row.source, code_object, address])
        return line

    def _blocks(self) -> Iterator[range]:
        """Runs of rows of one symbol (or of one code object without symbols)."""
        begin = 0
        for place in range(1, len(self._rows) + 1):
            ends = place == len(self._rows) or self._rows[place][4] != self._rows[begin][4]
            if ends or self.is_label(place):
                yield range(begin, place)
                begin = place


def _shown(block: range, hit: NDArray[np.bool_], code: CodeRows) -> range:
    """All rows of a symbol; without symbols those between the first and the last one executed."""
    if code.is_label(block.start):
        return block
    touched = np.flatnonzero(hit[block]) + block.start
    return range(int(touched[0]), int(touched[-1]) + 1)


def _grown(totals: LineTotals, rows: int) -> LineTotals:
    larger = LineTotals.zero(rows)
    count = len(totals.hit) - 1
    for name in ("hit", "latency", "stall", "idle"):
        getattr(larger, name)[:count] = getattr(totals, name)[:count]
    return larger


def _listed(source: CodeSource | None, code_object: int) -> Listing:
    if source is None and code_object == 0:
        raise BadDataError(
            "the trace has absolute addresses, and no results beside it say where the code was loaded",
            next_step="record with rocprofv3 --output-format json and keep the files together",
        )
    if source is None:
        raise BadDataError(f"code object {code_object} is not beside the trace")
    if source.disassembler is None:
        return read_table(source.path)
    return disassembled(source.disassembler, source.path)
