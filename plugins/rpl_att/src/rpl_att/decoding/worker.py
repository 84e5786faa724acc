"""The process that loads the foreign library: ``python -m rpl_att.decoding.worker``, a job on its input.

A crash, a hang or endless memory of the library ends here; the caller sees how the process ended.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rpl_att.decoding import (
    ANSWER,
    FREQUENCY,
    INFO,
    INFO_MEANINGS,
    INSTRUCTION,
    OCCUPANCY,
    REALTIME,
    STATE,
    WAVE,
    Answer,
    CodeSource,
    DecoderLibrary,
    Job,
    Load,
    Record,
    copied,
)
from rpl_att.reading import MAX_TABLE_BYTES, mapping, open_bounded, parse_json, rows, text, whole
from rpl_att.reading.wave_files import Rows
from rpl_att.reduction import LineTotals, idle_before
from rpl_core.errors import BadDataError, RplError
from rpl_core.files import read_regular
from rpl_core.text import counted
from rpl_core.values import frozen

# Writes decoded records as a folder in the 10-column layout, which the reader of decoded folders
# reads.


_HEADER = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
_VERSION = "3.0.0"
#: The longest real trace at hand has 38.7 million instructions in all; files of this many take 3 GB.
MAX_INSTRUCTIONS = 100_000_000
_GFX9 = 9
#: A wave with fewer states and no instruction gets no file (docs/reference/thread-trace.md, 2.5).
_MIN_STATES = 3
# idle, exec, wait, stall (docs/reference/thread-trace.md, 2.5); empty waves are not counted
_STATES = (1, 2, 3, 4)


class TraceWriter:
    """Set ``engine`` before each shader engine, pass records to ``take``, then ``finish`` once."""

    def __init__(self, folder: Path, code: CodeRows) -> None:
        self.engine = 0
        self._folder = folder
        self._code = code
        self._gfx_major: int | None = None
        self._instructions = 0
        self._waves: dict[str, Any] = {}
        self._numbers: Counter[tuple[int, int, int]] = Counter()
        self._occupancy: dict[str, list[list[int]]] = {}
        self._kernels: dict[tuple[int, int], int] = {(0, 0): 0}
        self._clocks: dict[str, list[list[int]]] = {}
        self._frequency_hz = 0
        self._states = StateChanges()
        self._infos: Counter[int] = Counter()
        self._switched = 0

    def take(self, kind: int, address: int, count: int) -> None:
        """One batch of records of ``kind``, as the library passes them."""
        if kind == Record.GFXIP:
            self._gfx_major = address  # the value itself, in place of a pointer
        elif kind == Record.OCCUPANCY:
            self._add_occupancy(copied(address, count, OCCUPANCY))
        elif kind == Record.WAVE:
            for wave in copied(address, count, WAVE):
                self._add_wave(wave)
        elif kind == Record.INFO:
            self._infos.update(int(value) for value in copied(address, count, INFO))
        elif kind == Record.REALTIME:
            pairs = copied(address, count, REALTIME)
            rows = [[int(p["shader_clock"]), int(p["realtime_clock"])] for p in pairs]
            self._clocks.setdefault(f"SE{self.engine}", []).extend(rows)
        elif kind == Record.RT_FREQUENCY and count:
            self._frequency_hz = int(copied(address, 1, FREQUENCY)[0])

    def _add_occupancy(self, events: NDArray[Any]) -> None:
        rows = self._occupancy.setdefault(str(self.engine), [])
        for event in events:
            pc = self._code.located(int(event["pc"]["code_object"]), int(event["pc"]["address"]))
            kernel = self._kernels.setdefault(pc, len(self._kernels))
            place = [int(event[name]) for name in ("time", "cu", "simd", "slot")]
            rows.append([*place, int(event["flags"]) & 1, kernel])

    def _add_wave(self, wave: NDArray[Any]) -> None:
        states = copied(int(wave["state_pointer"]), int(wave["states"]), STATE)
        instructions = copied(int(wave["instruction_pointer"]), int(wave["instructions"]), INSTRUCTION)
        self._instructions += len(instructions)
        if self._instructions > MAX_INSTRUCTIONS:
            raise BadDataError(f"the raw trace holds more than {MAX_INSTRUCTIONS} instructions")
        begin, end = int(wave["begin"]), int(wave["end"])
        self._switched += int(wave["contexts"] > 0)
        if not len(instructions) and len(states) < _MIN_STATES:
            return
        self._states.add(begin, states["state"], states["duration"])
        block = self._block(instructions)
        self._code.add(block, idle_before(block, begin).idle)
        simd, slot = int(wave["simd"]), int(wave["slot"])
        number = self._numbers[self.engine, simd, slot]
        self._numbers[self.engine, simd, slot] += 1
        name = f"se{self.engine}_sm{simd}_sl{slot}_wv{number}.json"
        slots = self._waves.setdefault(str(self.engine), {}).setdefault(str(simd), {})
        slots.setdefault(str(slot), {})[str(number)] = [name, begin, end]
        timeline = np.stack((states["state"], states["duration"]), axis=1).tolist()
        inner = {
            "cu": int(wave["cu"]),
            "id": number,
            "simd": simd,
            "slot": slot,
            "begin": begin,
            "end": end,
            "instructions": block.tolist(),
            "timeline": timeline,
            "waitcnt": None,
        }
        resolved = int((block[:, 4] > 0).sum())
        head = {"name": f"SE{self.engine}", "duration": end - begin}
        self._write(name, {**head, "num_insts": len(block), "num_stitched": resolved, "wave": inner})

    def _block(self, instructions: NDArray[Any]) -> NDArray[np.int64]:
        """Columns of a wave file: time, category, stall, duration, line."""
        packed = instructions["category_and_stall"]
        columns = (
            instructions["time"],
            packed & 0xFF,
            packed >> 8,
            instructions["duration"],
            self._code.lines(instructions["pc"]),
        )
        return np.stack([column.astype(np.int64) for column in columns], axis=1)

    def finish(self) -> tuple[str, ...]:
        """Write the tables; returns what is wrong with the trace, one line each."""
        rows = self._code.table()
        self._write("code.json", {"code": rows or None, "header": _HEADER, "version": _VERSION})
        major = self._gfx_major
        index: dict[str, Any] = {
            "counter_names": [],
            "gfxip": major,
            "gfxv": "navi" if (major or 0) > _GFX9 else "vega",
            "version": _VERSION,
            "wave_filenames": self._waves or None,
        }
        self._write("filenames.json", index)
        if self._occupancy:
            named = {str(n): f"{code} / {vaddr:#x}" for (code, vaddr), n in self._kernels.items()}
            self._write("occupancy.json", {**self._occupancy, "dispatches": named, "version": _VERSION})
        if self._clocks:
            self._write("realtime.json", {**self._clocks, "metadata": {"frequency": self._frequency_hz}})
        for name, table in self._states.tables().items():
            self._write(name, table)
        return tuple(self._notes())

    def _notes(self) -> list[str]:
        notes = [INFO_MEANINGS[kind] for kind in sorted(self._infos) if kind in INFO_MEANINGS]
        notes += [reason for _, reason in sorted(self._code.missing.items())]
        for code_object, count in sorted(self._code.unknown.items()):
            if code_object not in self._code.missing:
                notes.append(
                    f"code object {code_object} has no instruction at "
                    + counted(count, "requested address", "requested addresses")
                )
        if self._switched:
            waves = counted(self._switched, "wave was", "waves were")
            notes.append(f"{waves} switched out while traced: latencies are too long")
        return notes

    def _write(self, name: str, content: object) -> None:
        (self._folder / name).write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")


class StateChanges:
    """How many traced waves were in each state over time: the content of ``wstates<k>.json``.

    Clocks of shader engines are merged as they are (docs/reference/thread-trace.md, 2.8).
    """

    def __init__(self) -> None:
        self._begins: dict[int, list[NDArray[np.int64]]] = {state: [] for state in _STATES}
        self._ends: dict[int, list[NDArray[np.int64]]] = {state: [] for state in _STATES}

    def add(self, begin: int, states: NDArray[np.int32], durations: NDArray[np.int32]) -> None:
        """One wave: contiguous ``states`` from clock ``begin`` on, ``durations`` in cycles."""
        ends = begin + np.cumsum(durations, dtype=np.int64)
        for state in _STATES:
            chosen = (states == state) & (durations > 0)
            self._begins[state].append(ends[chosen] - durations[chosen])
            self._ends[state].append(ends[chosen])

    def tables(self) -> dict[str, dict[str, Any]]:
        """File name -> content, for each state that occurred."""
        tables_by_name = {}
        for state in _STATES:
            if not sum(map(len, self._begins[state])):
                continue
            clocks, counts = self._steps(state)
            name = f"wstates{state}.json"
            tables_by_name[name] = {"name": name, "time": clocks.tolist(), "state": counts.tolist()}
        return tables_by_name

    def _steps(self, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        begins, ends = np.concatenate(self._begins[state]), np.concatenate(self._ends[state])
        clocks, place = np.unique(np.concatenate((begins, ends)), return_inverse=True)
        steps = np.zeros(len(clocks), np.int64)
        np.add.at(steps, place.reshape(-1), np.repeat((1, -1), (len(begins), len(ends))))
        return clocks, np.cumsum(steps)


#: The largest trace buffer that rocprofv3 takes by default is 256 MiB for all shader engines
#: (docs/reference/thread-trace.md, 4.1).
MAX_TRACE_BYTES = 1 << 30


def main() -> None:
    """Do the job on standard input and leave the answer in its folder."""
    job = Job.from_json(sys.stdin.read())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (job.memory_bytes, job.memory_bytes))
    try:
        answer = decode(job)
    except (RplError, OSError) as error:
        answer = Answer({}, error=error.one_line() if isinstance(error, RplError) else str(error))
    except MemoryError:
        answer = Answer({}, error=f"decoding took more than {job.memory_bytes >> 20} MiB of memory")
    (job.out / ANSWER).write_text(answer.to_json(), encoding="utf-8")


def decode(job: Job) -> Answer:
    """Decode every trace of ``job`` into its folder, in order of shader engines."""
    library = DecoderLibrary(job.library)
    code = CodeRows(job.code, job.loads)
    writer = TraceWriter(job.out, code)
    statuses = {}
    for engine, path in sorted(job.traces):
        writer.engine = engine
        statuses[path.name] = library.decode(_read(path), writer.take, code.instruction)
    return Answer(statuses, writer.finish())


def _read(path: Path) -> bytes:
    with open_bounded(path) as stream:
        data = stream.read(MAX_TRACE_BYTES + 1)
    if len(data) > MAX_TRACE_BYTES:
        raise BadDataError(f"{path.name} is larger than {MAX_TRACE_BYTES >> 20} MiB and is not decoded")
    if not data:
        raise BadDataError(f"{path.name} is empty", next_step="record the trace again")
    return data


# The rows of the code table that is being written: every instruction of each code object that was met.


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


if __name__ == "__main__":
    main()
