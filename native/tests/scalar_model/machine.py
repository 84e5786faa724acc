"""The state of a wave, and what one instruction makes of it, lane by lane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .instructions import EXEC, VCC, Instruction, Source
from .number_formats import (
    F16,
    F32,
    FP8,
    NAN,
    Format,
    Near,
    OneOf,
    Result,
    accepts,
    is_denormal,
    is_nan,
    less,
    round_to,
    sign,
)
from .operations import FLOATS, WIDTHS, signed

LANES = 64
#: Registers and bytes that are compared.
VECTORS, SCALARS, ACCUMULATORS, LDS_BYTES = 20, 20, 4, 2048
ALL = (1 << LANES) - 1


@attrs.frozen
class Field:
    """A number somewhere in a register of which the documents leave something open."""

    at: int
    format: Format
    expected: Result

    @property
    def mask(self) -> int:
        return ((1 << self.format.width) - 1) << self.at


@attrs.frozen
class Cell:
    """What one lane of a register may hold: the bits, and fields that stand for others."""

    bits: int
    fields: tuple[Field, ...] = ()

    def accepts(self, actual: int) -> bool:
        open_bits = sum(f.mask for f in self.fields)
        if (actual ^ self.bits) & ~open_bits:
            return False
        return all(accepts(f.format, f.expected, (actual & f.mask) >> f.at) for f in self.fields)


@attrs.define
class State:
    """``vectors`` are rows of 64 lanes, ``scalars`` those that were set."""

    vectors: dict[int, list[int]]
    scalars: dict[int, int]
    accumulators: dict[int, list[int]] = attrs.field(factory=dict)
    scc: int = 0
    mode: int = 0x3F0
    lds: bytearray = attrs.field(factory=bytearray)

    @property
    def exec(self) -> int:
        return self.pair(EXEC)

    @classmethod
    def blank(cls) -> State:
        """What ``rpl-emu step`` starts with."""
        vectors = {k: [0] * LANES for k in range(VECTORS)}
        accumulators = {k: [0] * LANES for k in range(ACCUMULATORS)}
        scalars = dict.fromkeys(range(128), 0) | {EXEC: 0xFFFFFFFF, EXEC + 1: 0xFFFFFFFF}
        return cls(vectors, scalars, accumulators, lds=bytearray(LDS_BYTES))

    def load(self, values: Mapping[str, Any]) -> None:
        """By the names of registers, ``scc``, ``mode`` and ``lds``."""
        for name, value in values.items():
            if name in ("scc", "mode"):
                setattr(self, name, value)
            elif name == "lds":
                self.lds = bytearray(value)
            elif name[0] == "s":
                self.scalars[int(name[1:])] = value
            else:
                (self.vectors if name[0] == "v" else self.accumulators)[int(name[1:])] = list(value)

    def pair(self, index: int) -> int:
        return self.scalars[index] | self.scalars[index + 1] << 32

    def row(self, kind: str, index: int) -> list[int]:
        return self.vectors[index] if kind == "v" else self.accumulators[index]

    def lane(self, kind: str, index: int, words: int, lane: int) -> int:
        return sum(self.row(kind, index + k)[lane] << 32 * k for k in range(words))

    def scalar(self, index: int, words: int) -> int:
        return sum(self.scalars[index + k] << 32 * k for k in range(words))


@attrs.define
class Lane:
    """What a function may want to know beside its sources."""

    old: int
    vcc: int
    index: int


@attrs.define
class Wave:
    scc: int
    exec: int
    old: int


#: By the name of a register: rows of 64 cells, or the value of scalars.
Outcome = dict[str, Any]


def flushes(state: State, f: Format) -> tuple[bool, bool]:
    """Whether denormal sources and results become zeros, by the mode register."""
    bits = state.mode >> (4 if f is F32 else 6) & 3
    return not bits & 1, not bits & 2


def _flushed(f: Format, bits: int) -> int:
    return bits & f.sign_bit if is_denormal(f, bits) else bits


def _flushed_halves(state: State, bits: int) -> int:
    if not flushes(state, F16)[0]:
        return bits
    return _flushed(F16, bits & 0xFFFF) | _flushed(F16, bits >> 16) << 16


# ---- sources ----------------------------------------------------------------------
def _raw(state: State, source: Source, lane: int) -> int:
    """``lane`` -1: nothing was to be had from another lane, which counts as 0."""
    if lane < 0:
        return 0
    if source.kind == "constant":
        return source.value
    if source.kind == "s":
        return state.scalar(source.index, source.words)
    return state.lane(source.kind, source.index, source.words, lane)


def _selected(source: Source, bits: int, width: int) -> int:
    if source.select and source.select != "DWORD":
        part = 8 if source.select.startswith("BYTE") else 16
        bits = bits >> part * int(source.select[-1]) & ((1 << part) - 1)
        if source.extend:
            bits = signed(bits, part) & ((1 << 32) - 1)
    elif source.extend and width == 16:
        bits = signed(bits, 16) & ((1 << 32) - 1)
    if source.high:
        bits >>= 16
    return bits & ((1 << width) - 1)


def _with_sign(f: Format, bits: int, absolute: bool, negate: bool) -> int:
    if absolute:
        bits &= ~f.sign_bit
    return bits ^ f.sign_bit if negate else bits


def _operand(state: State, i: Instruction, k: int, lane: int) -> int:
    """The bits of a source as the operation sees them."""
    source, letter = i.sources[k], i.operation.sources[k]
    if letter == "b":
        return state.scalar(source.index, 2) >> lane & 1
    bits = _selected(source, _raw(state, source, lane), WIDTHS.get(letter, 32))
    f = FLOATS.get(letter) or (F32 if "sign of bits" in i.operation.tags else None)
    if letter == "q":
        return _flushed_halves(state, bits)
    if f is None or letter == "P":
        return bits
    bits = _with_sign(f, bits, source.absolute, source.negate)
    keeps = i.operation.keeps_denormals or letter == "u"
    return bits if keeps or not flushes(state, f)[0] else _flushed(f, bits)


def _half_operands(state: State, i: Instruction, raw: list[int], high: bool) -> list[int]:
    """Of a packed instruction: the sources of its low or of its high result."""
    letter, found = i.operation.sources[0], []
    width = 32 if letter == "P" else 16
    for source, bits in zip(i.sources, raw, strict=True):
        from_high = source.high_from_high if high else source.high
        part = bits >> (width if from_high else 0) & ((1 << width) - 1)
        if source.kind == "constant" and letter == "P":
            part = source.value & ((1 << 32) - 1)
        if letter in FLOATS:
            f = FLOATS[letter]
            negate = source.negate_high if high else source.negate
            part = _with_sign(f, part, absolute=False, negate=negate)
            part = _flushed(f, part) if flushes(state, f)[0] else part
        found.append(part)
    return found


def _mixed_operand(state: State, source: Source, lane: int) -> Result:
    from .conversions import converted

    bits = _raw(state, source, lane)
    if source.high_from_high:
        half = bits >> 16 & 0xFFFF if source.high else bits & 0xFFFF
        half = _flushed(F16, half) if flushes(state, F16)[0] else half
        wide = converted(F16, F32)(half)
        if not isinstance(wide, int):
            return NAN
        bits = wide
    elif flushes(state, F32)[0]:
        bits = _flushed(F32, bits)
    return _with_sign(F32, bits, source.absolute, source.negate)


# ---- results ----------------------------------------------------------------------
def _clamped(f: Format, value: Result) -> Result:
    """To [0, 1]; not-a-number gives 0, as DX10_CLAMP asks for."""
    if isinstance(value, Near):
        inner = _clamped(f, value.bits)
        return Near(inner, value.ulps) if isinstance(inner, int) else inner
    if isinstance(value, OneOf):
        inner = [_clamped(f, x) for x in value.values]
        return OneOf(
            tuple(
                x for y in inner for x in (y.values if isinstance(y, OneOf) else (y,)) if isinstance(x, int)
            )
        )
    if not isinstance(value, int) or is_nan(f, value):
        return 0
    one = f.bias << f.fraction
    if less(f, one, value):
        return one
    if value == f.sign_bit:
        return OneOf((0, f.sign_bit))
    return 0 if sign(f, value) else value


def _finished(state: State, i: Instruction, letter: str, value: Result) -> Result:
    f = FLOATS.get(letter)
    if f is None:
        return value
    if i.clamp:
        value = _clamped(f, value)
    if not flushes(state, f)[1] or i.operation.keeps_denormals:
        return value
    if isinstance(value, OneOf):
        return OneOf(tuple(_flushed(f, x) for x in value.values))
    return _flushed(f, value) if isinstance(value, int) else value


def _join(parts: list[tuple[int, Format | None, Result]], base: int) -> Cell:
    fields = []
    for at, f, value in parts:
        if isinstance(value, int):
            base |= value << at
        else:
            assert f is not None
            fields.append(Field(at, f, value))
    return Cell(base, tuple(fields))


def _cell(state: State, i: Instruction, value: Any, old: int) -> Cell:
    letter = i.operation.results[0]
    f = FLOATS.get(letter)
    if i.form == "_sdwa" and i.select:
        return _selected_result(i, f, _finished(state, i, letter, value), old)
    if isinstance(value, tuple):
        step = 32 if letter == "P" else 16
        done = [(step * k, f, _finished(state, i, letter, x)) for k, x in enumerate(value)]
        return _join(done, 0)
    value = _finished(state, i, letter, value)
    if letter in "HW":
        at = 16 if i.high else 0
        return _join([(at, f, value)], old & ~(0xFFFF << at))
    if letter == "B":
        at = 8 * i.byte
        return _join([(at, FP8, value)], old & ~(0xFF << at))
    return _join([(0, f, value)], 0)


def _selected_result(i: Instruction, f: Format | None, value: Result, old: int) -> Cell:
    """SDWA: the result goes to a part of the register; the rest is zeros, the sign, or stays."""
    if i.select == "DWORD":
        return _join([(0, f, value)], 0)
    width = 8 if i.select.startswith("BYTE") else 16
    at, mask = width * int(i.select[-1]), (1 << width) - 1
    rest = old & ~(mask << at) if i.unused == "PRESERVE" else 0
    if not isinstance(value, int):
        assert f is not None
        if width == 8:
            return Cell(0, (Field(0, F32, OneOf(())),))  # never drawn
        return _join([(at, f, value)], rest)
    if i.unused == "SEXT" and value >> (width - 1) & 1:
        rest = ((1 << 32) - 1) & ~((1 << (at + width)) - 1)
    return _join([(at, f, value & mask)], rest)


# ---- execution ----------------------------------------------------------------------
def execute(state: State, i: Instruction) -> Outcome:
    names = ("even", "up", "down", "zero")  # CDNA3 ISA, MODE: bits 0 and 1 floats, 2 and 3 doubles and halves
    floats, others = names[state.mode & 3], names[state.mode >> 2 & 3]
    round_to(others if i.operation.name == "v_cvt_f32_f64" else floats, others)
    if i.operation.group == "scalar":
        return _scalar(state, i)
    if i.operation.group == "wave":
        return i.operation.function(state, i)
    return _vector(state, i)


def _scalar(state: State, i: Instruction) -> Outcome:
    old = state.scalar(i.results[0].index, i.results[0].words) if i.results else 0
    wave = Wave(state.scc, state.exec, old)
    sources = [_raw(state, x, 0) for x in i.sources]
    result = i.operation.function(*([wave] if "wave" in i.operation.wants else []), *sources)
    outcome: Outcome = {}
    if "sets scc" in i.operation.wants:
        result, outcome["scc"] = result if isinstance(result, tuple) else (None, result)
    if "writes exec" in i.operation.wants:
        outcome |= {f"s{EXEC}": wave.exec & 0xFFFFFFFF, f"s{EXEC + 1}": wave.exec >> 32}
    for to in i.results:
        outcome |= {f"s{to.index + k}": result >> 32 * k & 0xFFFFFFFF for k in range(to.words)}
    return outcome


def _source_lane(state: State, i: Instruction, lane: int) -> int | None:
    """Which lane the first source comes from; none: the lane stays as it is."""
    cross = i.cross_lane
    if cross is None:
        return lane
    if not cross.rows >> (lane >> 4) & 1 or not cross.banks >> (lane >> 2 & 3) & 1:
        return None
    found = cross.lane(lane)
    if found is not None and state.exec >> found & 1:
        return found
    return -1 if cross.bound else None


def _sources(state: State, i: Instruction, lane: int, first: int) -> list[Any]:
    group = i.operation.group
    if group == "mixed":
        return [_mixed_operand(state, x, lane) for x in i.sources]
    if group == "packed":
        return [_raw(state, x, lane) for x in i.sources]
    return [_operand(state, i, k, first if k == 0 else lane) for k in range(len(i.sources))]


def _compute(state: State, i: Instruction, lane: int, first: int, old: int) -> Any:
    sources = _sources(state, i, lane, first)
    function = i.operation.function
    if i.operation.group == "packed":
        return tuple(function(*_half_operands(state, i, sources, high)) for high in (False, True))
    if any(x is NAN for x in sources):
        return NAN
    if i.operation.wants == "lane":
        f = FLOATS.get(i.operation.results[0])
        if f is not None and i.operation.results[0] in "fF" and flushes(state, f)[0]:
            old = _flushed(f, old)
        if i.operation.results == "q":
            old = _flushed_halves(state, old)
        return function(Lane(old, state.pair(VCC) >> lane & 1, lane), *sources)
    return function(*sources)


def _vector(state: State, i: Instruction) -> Outcome:
    letters = i.operation.results
    rows: dict[int, list[Any]] = {}
    mask, open_mask = 0, 0
    vector = next((x for x in i.results if x.kind == "v"), None)
    if vector:
        rows = {k: list(state.vectors[vector.index + k]) for k in range(vector.words)}
    for lane in range(LANES):
        first = _source_lane(state, i, lane)
        if not state.exec >> lane & 1 or first is None:
            continue
        old = state.lane("v", vector.index, vector.words, lane) if vector else 0
        value = _compute(state, i, lane, first, old)
        if letters.endswith("b"):
            bit = value[1] if vector else value
            value = value[0] if vector else value
            mask |= max(bit, 0) << lane
            open_mask |= (bit < 0) << lane
        if vector:
            _store(rows, lane, _cell(state, i, value, old))
    outcome: Outcome = {f"v{vector.index + k}": row for k, row in rows.items()} if vector else {}
    if letters.endswith("b"):
        to = i.results[-1]
        outcome |= {f"s{to.index + k}": _part(mask, open_mask, k) for k in range(2)}
        if "writes exec" in i.operation.wants:
            outcome |= {f"s{EXEC + k}": mask >> 32 * k & 0xFFFFFFFF for k in range(2)}
    return outcome


def _part(mask: int, open_mask: int, k: int) -> int | Cell:
    bits, opened = mask >> 32 * k & 0xFFFFFFFF, open_mask >> 32 * k & 0xFFFFFFFF
    if not opened:
        return bits
    return Cell(bits, tuple(Field(n, Format(1, 0, 0), OneOf((0, 1))) for n in range(32) if opened >> n & 1))


def _store(rows: dict[int, list[Any]], lane: int, cell: Cell) -> None:
    if not cell.fields:
        for k, row in rows.items():
            row[lane] = cell.bits >> 32 * k & 0xFFFFFFFF
        return
    if len(rows) == 1:
        rows[0][lane] = cell
        return
    # A number of two words is judged as one: the pair shares its cell.
    for k, row in rows.items():
        row[lane] = (cell, k)


def disagreements(state: State, expected: Outcome, actual: dict[str, Any]) -> list[str]:
    """What the emulator left otherwise than the model; the state becomes the emulator's."""
    wrong = []
    for name, value in expected.items():
        if name == "lds":
            wrong += [] if bytes(value) == bytes(actual[name]) else [_first_byte(value, actual[name])]
        elif name[0] not in "va":
            fine = value.accepts(actual[name]) if isinstance(value, Cell) else value == actual[name]
            if not fine:
                wrong.append(f"{name}: model {value!r}, emulator {actual[name]:#x}")
        else:
            wrong += _row_disagreements(name, value, actual)
    state.load({name: actual[name] for name in expected})
    return wrong


def _first_byte(expected: bytes, actual: bytes) -> str:
    at = next(k for k, (x, y) in enumerate(zip(expected, actual, strict=True)) if x != y)
    return f"LDS at {at}: model {expected[at : at + 8].hex()}, emulator {actual[at : at + 8].hex()}"


def _row_disagreements(name: str, row: list[Any], actual: dict[str, Any]) -> list[str]:
    wrong = []
    for lane, cell in enumerate(row):
        found = actual[name][lane]
        if isinstance(cell, int):
            fine = cell == found
        elif isinstance(cell, tuple):
            low = int(name[1:]) - cell[1]
            found = actual[f"v{low}"][lane] | actual[f"v{low + 1}"][lane] << 32
            fine = cell[0].accepts(found)
        else:
            fine = cell.accepts(found)
        if not fine:
            shown = f"{cell:#x}" if isinstance(cell, int) else repr(cell)
            wrong.append(f"{name} lane {lane}: model {shown}, emulator {found:#x}")
    return wrong
