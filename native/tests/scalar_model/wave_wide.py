"""Instructions that look at more than one lane: lane moves, permutes, LDS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .instructions import Instruction
from .machine import LANES, Outcome, State
from .number_formats import BF16, F16, F32, F64, Format, Result, add, less
from .operations import define, signed

M32 = (1 << 32) - 1


def _active(state: State) -> list[int]:
    return [lane for lane in range(LANES) if state.exec >> lane & 1]


def _source(state: State, i: Instruction, k: int, lane: int) -> int:
    source = i.sources[k]
    if source.kind == "constant":
        return source.value
    if source.kind == "s":
        return state.scalar(source.index, source.words)
    return state.lane(source.kind, source.index, source.words, lane)


def _read_lane(state: State, i: Instruction) -> Outcome:
    return {f"s{i.results[0].index}": _source(state, i, 0, _source(state, i, 1, 0) & 63)}


def _read_first_lane(state: State, i: Instruction) -> Outcome:
    return {f"s{i.results[0].index}": _source(state, i, 0, [*_active(state), 0][0])}


def _write_lane(state: State, i: Instruction) -> Outcome:
    row = list(state.vectors[i.results[0].index])
    row[_source(state, i, 1, 0) & 63] = _source(state, i, 0, 0)
    return {f"v{i.results[0].index}": row}


def _swap(state: State, i: Instruction) -> Outcome:
    a, b = i.results[0].index, i.sources[0].index
    first, second = list(state.vectors[a]), list(state.vectors[b])
    for lane in _active(state):
        first[lane], second[lane] = state.vectors[b][lane], state.vectors[a][lane]
    return {f"v{a}": first, f"v{b}": second}


def _move(state: State, i: Instruction) -> Outcome:
    to = i.results[0]
    row = list(state.row(to.kind, to.index))
    for lane in _active(state):
        row[lane] = _source(state, i, 0, lane)
    return {f"{to.kind}{to.index}": row}


define("wave", "s:uu", {"v_readlane_b32": _read_lane}, draw=("vector", "lane"))
define("wave", "s:u", {"v_readfirstlane_b32": _read_first_lane}, draw=("vector",))
define("wave", "u:uu", {"v_writelane_b32": _write_lane}, draw=("scalar", "lane"))
define("wave", "u:u", {"v_swap_b32": _swap}, draw=("vector",))
define("wave", "u:a", {"v_accvgpr_read_b32": _move})
define("wave", "a:u", {"v_accvgpr_write_b32": _move}, draw=("vector",))
define("wave", "a:a", {"v_accvgpr_mov_b32": _move})


def _below(x: Any, mask: int, count: int, first: int) -> int:
    below = mask & ((1 << max(0, min(32, x.index - first))) - 1)
    return (f"{below:b}".count("1") + count) & M32


define("vector", "u:uu", {"v_mbcnt_lo_u32_b32": lambda x, a, b: _below(x, a, b, 0)}, wants="lane")
define("vector", "u:uu", {"v_mbcnt_hi_u32_b32": lambda x, a, b: _below(x, a, b, 32)}, wants="lane")


# ---- permutes ----------------------------------------------------------------------
def _permute(state: State, i: Instruction) -> Outcome:
    """Of lanes that send to the same place the highest wins; who gets nothing gets 0."""
    sent = [0] * LANES
    for lane in _active(state):
        sent[(_source(state, i, 0, lane) + i.offset[0]) // 4 % 64] = _source(state, i, 1, lane)
    return _into(state, i, sent)


def _backward_permute(state: State, i: Instruction) -> Outcome:
    """Lanes that are switched off give 0."""
    found = [0] * LANES
    for lane in _active(state):
        at = (_source(state, i, 0, lane) + i.offset[0]) // 4 % 64
        found[lane] = _source(state, i, 1, at) if state.exec >> at & 1 else 0
    return _into(state, i, found)


def swizzled(offset: int, lane: int) -> int:
    """The lane that is read: of four, or of 32 by masks, rotated, or in the order of an FFT."""
    half, place, mask = lane & 32, lane & 31, offset & 31
    if offset & 0xE000 == 0xE000:
        return half | place & mask | int(f"{place:05b}"[::-1], 2) >> f"{mask:b}".count("1")
    if offset & 0xE000 == 0xC000:
        by = offset >> 5 & 31
        by = -by if offset >> 10 & 1 else by
        return half | place & mask | (place + by) & 31 & ~mask
    if offset & 0x8000:
        return lane & ~3 | offset >> 2 * (lane & 3) & 3
    return half | ((place & offset | offset >> 5) ^ offset >> 10) & 31


def _swizzle(state: State, i: Instruction) -> Outcome:
    found = [0] * LANES
    for lane in _active(state):
        at = swizzled(i.offset[0], lane)
        found[lane] = _source(state, i, 0, at) if state.exec >> at & 1 else 0
    return _into(state, i, found)


def _into(state: State, i: Instruction, values: list[int]) -> Outcome:
    row = list(state.vectors[i.results[0].index])
    for lane in _active(state):
        row[lane] = values[lane]
    return {f"v{i.results[0].index}": row}


define(
    "wave",
    "u:uu",
    {"ds_permute_b32": _permute, "ds_bpermute_b32": _backward_permute},
    draw=("lane address", "vector"),
)
define("wave", "u:u", {"ds_swizzle_b32": _swizzle}, draw=("vector",))


# ---- LDS ----------------------------------------------------------------------
def _get(state: State, at: int, count: int) -> int:
    return int.from_bytes(state.lds[at : at + count], "little")


def _put(lds: bytearray, at: int, count: int, value: int) -> None:
    lds[at : at + count] = (value & ((1 << 8 * count) - 1)).to_bytes(count, "little")


def _places(i: Instruction, base: int) -> tuple[int, ...]:
    """Addresses; two offsets count elements, or 64 of them."""
    if len(i.offset) == 1:
        return (base + i.offset[0],)
    size = 8 if i.operation.name.endswith("b64") else 4
    step = size * (64 if "st64" in i.operation.name else 1)
    return tuple(base + n * step for n in i.offset)


def _reads(size: int, into: Callable[[int, int], int]) -> Callable[[State, Instruction], Outcome]:
    """``into(old, value)``: what the register holds then."""

    def run(state: State, i: Instruction) -> Outcome:
        to = i.results[0]
        rows = [list(state.vectors[to.index + k]) for k in range(to.words)]
        for lane in _active(state):
            places = _places(i, _source(state, i, 0, lane))
            value = sum(_get(state, at, size) << 8 * size * k for k, at in enumerate(places))
            value = into(rows[0][lane], value)
            for k, row in enumerate(rows):
                row[lane] = value >> 32 * k & M32
        return {f"v{to.index + k}": row for k, row in enumerate(rows)}

    return run


def _writes(size: int, shift: int = 0) -> Callable[[State, Instruction], Outcome]:
    def run(state: State, i: Instruction) -> Outcome:
        lds = bytearray(state.lds)
        for lane in _active(state):
            for k, at in enumerate(_places(i, _source(state, i, 0, lane))):
                _put(lds, at, size, _source(state, i, 1 + k, lane) >> shift)
        return {"lds": lds}

    return run


_WORDS = {4: "1", 8: "2", 12: "3", 16: "4"}
for _size, _letter in _WORDS.items():
    define(
        "wave", f"{_letter}:a", {f"ds_read_b{8 * _size}": _reads(_size, lambda old, v: v)}, draw=("address",)
    )
    define("wave", f":a{_letter}", {f"ds_write_b{8 * _size}": _writes(_size)}, draw=("own address",))
for _size, _one, _two in ((4, "1", "2"), (8, "2", "4")):
    for _st in ("", "st64"):
        _name = f"2{_st}_b{8 * _size}"
        define("wave", f"{_two}:a", {f"ds_read{_name}": _reads(_size, lambda old, v: v)}, draw=("address",))
        define("wave", f":a{_one}{_one}", {f"ds_write{_name}": _writes(_size)}, draw=("own address",))
for _bits in (8, 16):
    _bytes = _bits // 8
    define(
        "wave",
        "1:a",
        {
            f"ds_read_u{_bits}": _reads(_bytes, lambda old, v: v),
            f"ds_read_i{_bits}": _reads(_bytes, lambda old, v, n=_bits: signed(v, n) & M32),
            f"ds_read_u{_bits}_d16": _reads(_bytes, lambda old, v: old & 0xFFFF0000 | v),
            f"ds_read_u{_bits}_d16_hi": _reads(_bytes, lambda old, v: old & 0xFFFF | v << 16),
        },
        draw=("address",),
    )
    define(
        "wave",
        ":a1",
        {f"ds_write_b{_bits}": _writes(_bytes), f"ds_write_b{_bits}_d16_hi": _writes(_bytes, 16)},
        draw=("own address",),
    )
define(
    "wave",
    "1:a",
    {
        "ds_read_i8_d16": _reads(1, lambda old, v: old & 0xFFFF0000 | signed(v, 8) & 0xFFFF),
        "ds_read_i8_d16_hi": _reads(1, lambda old, v: old & 0xFFFF | (signed(v, 8) & 0xFFFF) << 16),
    },
    draw=("address",),
)


def _atomic(bits: int, function: Callable[..., Result]) -> Callable[[State, Instruction], Outcome]:
    """Lanes are served from the lowest; the value before is what is returned."""

    def run(state: State, i: Instruction) -> Outcome:
        work = State({}, {}, lds=bytearray(state.lds))
        before = list(range(LANES))
        for lane in _active(state):
            (at,) = _places(i, _source(state, i, 0, lane))
            before[lane] = _get(work, at, bits // 8)
            data = [_source(state, i, k, lane) for k in range(1, len(i.sources))]
            result = function(before[lane], *data)
            _put(work.lds, at, bits // 8, result if isinstance(result, int) else -1)
        outcome: Outcome = {"lds": work.lds}
        for k in range(i.results[0].words if i.results else 0):
            row = list(state.vectors[i.results[0].index + k])
            for lane in _active(state):
                row[lane] = before[lane] >> 32 * k & M32
            outcome[f"v{i.results[0].index + k}"] = row
        return outcome

    return run


def _signed_pair(bits: int) -> tuple[Callable[[int, int], int], Callable[[int, int], int]]:
    return (
        lambda m, d: min(m, d, key=lambda x: signed(x, bits)),
        lambda m, d: max(m, d, key=lambda x: signed(x, bits)),
    )


def _halves(f: Format) -> Callable[[int, int], int]:
    def run(memory: int, data: int) -> int:
        parts = [add(f, memory >> s & 0xFFFF, data >> s & 0xFFFF) for s in (0, 16)]
        assert all(isinstance(x, int) for x in parts)  # drawn without infinities
        return int(parts[0]) | int(parts[1]) << 16  # type: ignore[call-overload,no-any-return]

    return run


def _define_atomic(
    name: str, suffix: str, bits: int, function: Callable[..., Result], extra: int = 1, **more: Any
) -> None:
    letter = "2" if bits == 64 else "1"
    run = _atomic(bits, function)
    if name != "wrxchg":
        define("wave", f":a{letter * extra}", {f"ds_{name}_{suffix}": run}, **more)
    define("wave", f"{letter}:a{letter * extra}", {f"ds_{name}_rtn_{suffix}": run}, **more)


for _bits in (32, 64):
    _m = (1 << _bits) - 1
    _smin, _smax = _signed_pair(_bits)
    _of: dict[str, tuple[str, Callable[..., int]]] = {
        "add": ("u", lambda m, d, k=_m: (m + d) & k),
        "sub": ("u", lambda m, d, k=_m: (m - d) & k),
        "rsub": ("u", lambda m, d, k=_m: (d - m) & k),
        "inc": ("u", lambda m, d: 0 if m >= d else m + 1),
        "dec": ("u", lambda m, d: d if m == 0 or m > d else m - 1),
        "min": ("u", min),
        "max": ("u", max),
        "and": ("b", lambda m, d: m & d),
        "or": ("b", lambda m, d: m | d),
        "xor": ("b", lambda m, d: m ^ d),
        "wrxchg": ("b", lambda m, d: d),
    }
    for _name, (_kind, _f) in _of.items():
        _define_atomic(_name, f"{_kind}{_bits}", _bits, _f, draw=("address",))
    _define_atomic("min", f"i{_bits}", _bits, _smin, draw=("address",))
    _define_atomic("max", f"i{_bits}", _bits, _smax, draw=("address",))
    _define_atomic(
        "cmpst",
        f"b{_bits}",
        _bits,
        lambda m, c, d: d if m == c else m,
        extra=2,
        draw=("address", "in memory"),
    )
    _g = F32 if _bits == 32 else F64
    _floats = {"draw": ("address", "finite"), "tags": {"floats in memory"}}
    _define_atomic("add", f"f{_bits}", _bits, lambda m, d, f=_g: add(f, m, d), **_floats)
    _define_atomic("min", f"f{_bits}", _bits, lambda m, d, f=_g: d if less(f, d, m) else m, **_floats)
    _define_atomic("max", f"f{_bits}", _bits, lambda m, d, f=_g: d if less(f, m, d) else m, **_floats)
for _name, _g in (("f16", F16), ("bf16", BF16)):
    _define_atomic("pk_add", _name, 32, _halves(_g), draw=("address", "finite"), tags={"floats in memory"})
