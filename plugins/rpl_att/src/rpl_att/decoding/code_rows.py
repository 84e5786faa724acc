"""The rows of the code table that is being written: every instruction of each code object that was met.

Row numbers are given when a code object is first met, so that waves can be written while decoding goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rpl_att.decoding.job import CodeSource, Load
from rpl_att.decoding.listing import Instruction, Listing, disassembled, read_table
from rpl_att.reading.numeric_rows import Rows
from rpl_att.reduction.line_totals import LineTotals
from rpl_core.errors import BadDataError

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
