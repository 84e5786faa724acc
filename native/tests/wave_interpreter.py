"""Runs a kernel of whole numbers from what llvm-objdump prints of it, and counts what each place executed.

Written from AMD's document of the instruction set ("AMD Instinct MI300" CDNA3, chapter 12) and LLVM's
AMDGPUUsage (registers at the start of a kernel), without the emulator: neither its decoder nor its functions.
It knows what clang makes of emu_corpus/counted_kernels.py, and raises ``KeyError`` for all else.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_testkit.requirements import require

LANES, BANKS = 64, 32
VCC, M0, EXEC = 106, 124, 126
NAMED = {"vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "m0": (M0, 1)}
NAMED |= {"exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1)}
#: Every buffer begins at one of these, further apart than a test's buffer is long.
BUFFER = 1 << 20
_LOW = 0xFFFFFFFF
Lanes = NDArray[np.uint64]


def signed(value: Any, bits: int = 32) -> Any:
    """Of a Python integer, or of all lanes."""
    if isinstance(value, int):
        return (value & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)
    return value.astype(np.uint32).astype(np.int32).astype(np.int64)


def _each(function: Callable[[int], int]) -> Callable[[Lanes], Lanes]:
    return lambda words: np.array([function(int(word)) for word in words], np.uint64)


def _field(width: Any) -> Any:
    return (np.uint64(1) << (width & np.uint64(31))) - np.uint64(1)


def _signed_field(a: Any, b: Any, c: Any) -> Any:
    width = c & np.uint64(31)
    sign = np.uint64(1) << width >> np.uint64(1)
    return ((a >> (b & np.uint64(31)) & _field(c)) ^ sign) - sign


_BELOW: Lanes = np.array([(1 << lane) - 1 for lane in range(LANES)], np.uint64)
#: Of all lanes; results are cut off to the words that are written, operands have 32 bits but for _WIDE.
VECTOR: dict[str, Callable[..., Any]] = {
    "mov_b32": lambda a: a,
    "not_b32": lambda a: ~a,
    "bfrev_b32": _each(lambda a: int(f"{a:032b}"[::-1], 2)),
    "add_u32": lambda a, b: a + b,
    "sub_u32": lambda a, b: a - b,
    "subrev_u32": lambda a, b: b - a,
    "mul_lo_u32": lambda a, b: a * b,
    "mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "and_b32": lambda a, b: a & b,
    "or_b32": lambda a, b: a | b,
    "xor_b32": lambda a, b: a ^ b,
    "lshlrev_b32": lambda a, b: b << (a & 31),
    "lshrrev_b32": lambda a, b: b >> (a & 31),
    "min_u32": np.minimum,
    "max_u32": np.maximum,
    "add3_u32": lambda a, b, c: a + b + c,
    "add_lshl_u32": lambda a, b, c: (a + b & _LOW) << (c & 31),
    "and_or_b32": lambda a, b, c: a & b | c,
    "bfe_u32": lambda a, b, c: a >> (b & 31) & _field(c),
    "bfe_i32": _signed_field,
    "lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "bfi_b32": lambda a, b, c: a & b | ~a & c,
    "max3_u32": lambda a, b, c: np.maximum(np.maximum(a, b), c),
    "xad_u32": lambda a, b, c: (a ^ b) + c,
    "or3_b32": lambda a, b, c: a | b | c,
    # Lanes below the own one, of which each looks at 32.
    "mbcnt_lo_u32_b32": lambda a, b: _each(int.bit_count)(a & _BELOW) + b,
    "mbcnt_hi_u32_b32": lambda a, b: _each(int.bit_count)(a & _BELOW >> np.uint64(32)) + b,
    "mov_b64": lambda a: a,
    "lshl_add_u64": lambda a, b, c: (a << (b & 7)) + c,
}
_WIDE = ("mov_b64", "lshl_add_u64")
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lg": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
#: Of scalars; SCC afterwards says whether the result is not 0.
LOGIC: dict[str, Callable[[int, int], int]] = {
    "not": lambda a, _: ~a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "bcnt1_i32": lambda a, _: a.bit_count(),
}
#: Of scalars, with SCC before it: the result, and SCC afterwards.
SCALAR: dict[str, Callable[[int, int, bool], tuple[int, bool]]] = {
    "mov_b32": lambda a, _, scc: (a, scc),
    "mov_b64": lambda a, _, scc: (a, scc),
    "movk_i32": lambda a, _, scc: (signed(a, 16), scc),
    "mul_i32": lambda a, b, scc: (a * b, scc),
    "add_i32": lambda a, b, _: (a + b, signed(a) + signed(b) != signed(a + b)),
    "add_u32": lambda a, b, _: (a + b, a + b > _LOW),
    "addc_u32": lambda a, b, scc: (a + b + scc, a + b + scc > _LOW),
    "min_u32": lambda a, b, _: (min(a, b), a < b),
    "max_u32": lambda a, b, _: (max(a, b), a > b),
    "lshl_b32": lambda a, b, _: (a << (b & 31), a << (b & 31) & _LOW != 0),
    "lshl_b64": lambda a, b, _: (a << (b & 63), a << (b & 63) & (1 << 64) - 1 != 0),
    "ff1_i32_b64": lambda a, _, scc: ((a & -a).bit_length() - 1, scc),
    "cselect_b32": lambda a, b, scc: (a if scc else b, scc),
    "cselect_b64": lambda a, b, scc: (a if scc else b, scc),
}
ATOMIC: dict[str, Callable[[int, int], int]] = {"add": lambda old, new: old + new, "umax": max}
#: Modifiers of SDWA: where a part of a register begins, and how wide it is.
PARTS = {f"BYTE_{k}": (8 * k, 8) for k in range(4)} | {"WORD_0": (0, 16), "WORD_1": (16, 16)}
PARTS |= {"DWORD": (0, 32), "ALL": (0, 64)}
_WHOLE = ("DWORD", "UNUSED_PAD")


@attrs.define
class Count:
    """What one place executed; names are those of ``rpl-emu launch --json``."""

    executed: int = 0
    lanes: int = 0
    bytes: int = 0
    lines_64b: int = 0
    lines_128b: int = 0
    bank_conflict_passes: int = 0


@attrs.frozen
class Line:
    """``words``: the operands as printed; ``options``: offset:16 and sc0, say; ``target``: of a branch."""

    at: int
    name: str
    words: tuple[str, ...]
    options: dict[str, str]
    target: int | None

    def offset(self, name: str = "offset") -> int:
        return int(self.options.get(name, "0"))


def listing(code: Path, kernel: str) -> dict[int, Line]:
    """By their address."""
    program: str | Path = require("llvm-objdump-22")
    command = [program, "-d", "--mcpu=gfx942", f"--disassemble-symbols={kernel}", code]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    begin = int(text.partition(f" <{kernel}>:")[0].split()[-1], 16)
    lines = {}
    option = re.compile(r" (sc0|sc1|nt|\w+:[-\w]+)(?= |$)")
    for name, rest, place, behind in re.findall(
        r"^\t(\w+) ?(.*?) *// (\w+): [0-9A-F ]+(.*)$", text, re.MULTILINE
    ):
        options = dict((*found.split(":"), "")[:2] for found in option.findall(rest))
        words = [word.strip() for word in option.sub("", rest).split(", ") if word]
        target = re.fullmatch(r"<\w+(?:\+0x([0-9a-f]+))?>", behind)
        goes_to = begin + int(target[1] or "0", 16) if target else None
        at = int(place, 16)
        lines[at] = Line(at, re.sub(r"_(e32|e64|sdwa)$", "", name), tuple(words), options, goes_to)
    return lines


class Interpreter:
    """One launch. ``buffers`` are what the kernel's arguments point at, and are changed; all are of words."""

    def __init__(self, code: Path, kernel: str, buffers: list[bytearray], lds_bytes: int) -> None:
        self.lines = listing(code, kernel)
        self.memory = {BUFFER * (k + 1): buffer for k, buffer in enumerate(buffers)}
        self.memory[0] = bytearray(b"".join(at.to_bytes(8, "little") for at in self.memory))
        self.lds_bytes = lds_bytes
        self.counts: dict[int, Count] = {}

    def run(self, groups: int, block: int) -> dict[int, Count]:
        """By their address."""
        for group in range(groups):
            lds = bytearray(self.lds_bytes)
            waves = [
                Wave(self, lds, group, first, min(LANES, block - first)) for first in range(0, block, LANES)
            ]
            going = [wave.run() for wave in waves]
            while going:  # each up to the next barrier
                going = [wave for wave in going if next(wave, None) is not None]
        return self.counts


class Wave:
    def __init__(self, launch: Interpreter, lds: bytearray, group: int, first: int, lanes: int) -> None:
        self.launch, self.lds = launch, lds
        self.s = [0] * 128
        self.v = np.zeros((256, LANES), np.uint64)
        self.scc = False
        # AMDGPUUsage: the address of the arguments, the workgroup, and in v0 the work-item.
        self.s[2] = group
        self.v[0, :lanes] = np.arange(first, first + lanes)
        self.at = min(launch.lines)
        self.put("exec", (1 << lanes) - 1)

    def run(self) -> Iterator[str]:
        while True:
            line = self.launch.lines[self.at]
            self.at = min(at for at in (line.at + 4, line.at + 8) if at in self.launch.lines)
            self.count = self.launch.counts.setdefault(line.at, Count())
            self.count.executed += 1
            self.count.lanes += self.get("exec").bit_count()
            if line.name == "s_endpgm":
                return
            if line.name == "s_barrier":
                yield line.name
            kind, _, name = line.name.partition("_")
            if kind == "s" and name not in ("barrier", "waitcnt", "nop"):
                self._branch(line) if "branch" in name else self._scalar(line, name)
            elif kind == "v":
                self._vector(line, name)
            elif kind == "global":
                self._global(line, name)
            elif kind == "ds":
                self._lds(line, name)

    def _on(self) -> list[int]:
        mask = self.get("exec")
        return [lane for lane in range(LANES) if mask >> lane & 1]

    def get(self, word: str, words: int | None = None) -> int:
        """A scalar operand; ``words`` widens a constant's sign."""
        if word in NAMED:
            first, count = NAMED[word]
        elif found := re.fullmatch(r"s(\d+)|s\[(\d+):(\d+)\]", word):
            first = int(found[1] or found[2])
            count = 1 if found[1] else int(found[3]) - first + 1
        else:
            return int(word, 0) & (1 << 32 * (words or 1)) - 1
        return sum(self.s[first + k] << 32 * k for k in range(count))

    def put(self, word: str, value: int) -> None:
        first, count = NAMED.get(word) or _span(word)
        for k in range(count):
            self.s[first + k] = value >> 32 * k & _LOW

    def lanes(self, word: str) -> Lanes:
        """A vector operand of one or two words; a scalar or a constant is that of all lanes."""
        if word[0] != "v" or word.startswith("vcc"):
            return np.full(LANES, self.get(word, 2 if word.startswith(("s[", "-")) else 1), np.uint64)
        first, count = _span(word)
        both: Lanes = self.v[first].copy()
        return both if count == 1 else both | self.v[first + 1] << np.uint64(32)

    def keep(self, word: str, value: Lanes) -> None:
        first, count = _span(word)
        on = self._on()
        for k in range(count):
            self.v[first + k, on] = (value >> np.uint64(32 * k) & np.uint64(_LOW))[on]

    def _branch(self, line: Line) -> None:
        taken = {
            "branch": True,
            "cbranch_scc0": not self.scc,
            "cbranch_scc1": self.scc,
            "cbranch_vccz": self.get("vcc") == 0,
            "cbranch_vccnz": self.get("vcc") != 0,
            "cbranch_execz": self.get("exec") == 0,
            "cbranch_execnz": self.get("exec") != 0,
        }[line.name[2:]]
        if taken:
            assert line.target is not None
            self.at = line.target

    def _scalar(self, line: Line, name: str) -> None:
        to, *words = line.words
        wide = 2 if name.endswith("64") else 1
        mask = (1 << 32 * wide) - 1
        if found := re.fullmatch(r"load_dword(?:x(\d+))?", name):
            size, begin = 4 * int(found[1] or 1), self.get(words[0]) + int(words[1], 0)
            whole, at = self.launch.memory[begin // BUFFER * BUFFER], begin % BUFFER
            self.put(to, int.from_bytes(whole[at : at + size], "little"))
            self.count.bytes += size
            self._touch([begin], size)
        elif found := re.fullmatch(r"cmp_(\w\w)_u(?:32|64)", name):
            self.scc = bool(COMPARE[found[1]](*(self.get(word, wide) for word in line.words)))
        elif found := re.fullmatch(r"(\w+)_saveexec_b64", name):
            before = self.get("exec")
            after = LOGIC[found[1]](self.get(words[0], 2), before) & mask
            self.put(to, before)
            self.put("exec", after)
            self.scc = after != 0
        elif name == "mulk_i32":
            self.put(to, self.get(to) * signed(int(words[0], 0), 16))
        else:
            a, b, *_ = (*(self.get(word, wide) for word in words), 0)
            if logic := LOGIC.get(name[:-4]):
                result = logic(a, b) & mask
                self.scc = result != 0
            else:
                result, self.scc = SCALAR[name](a, b, self.scc)
            self.put(to, result)

    def _vector(self, line: Line, name: str) -> None:
        to, *words = line.words
        if found := re.fullmatch(r"cmp_(\w\w)_([ui])32", name):
            a, b = self._operands(line, words)
            held = COMPARE[found[1]](*((signed(a), signed(b)) if found[2] == "i" else (a, b)))
            self.put(to, sum(1 << lane for lane in self._on() if held[lane]))
        elif name == "readfirstlane_b32":
            self.put(to, int(self.lanes(words[0])[(self._on() or [0])[0]]))
        elif name == "readlane_b32":
            self.put(to, int(self.lanes(words[0])[self.get(words[1]) % LANES]))
        elif name in ("add_co_u32", "mad_u64_u32"):  # the second result holds the lanes' carries
            a, b = (one.tolist() for one in self._operands(line, words[1:3]))
            c = [self.lanes(word).tolist() for word in words[3:]]
            both = zip(a, b, *c, strict=True)
            sums = [one[0] * one[1] + one[2] if c else one[0] + one[1] for one in both]
            bits = 64 if c else 32
            self.put(words[0], sum(1 << lane for lane in self._on() if sums[lane] >> bits))
            self.keep(to, np.array([one & (1 << bits) - 1 for one in sums], np.uint64))
        elif name == "cndmask_b32":
            chosen = np.array([self.get(words[2]) >> lane & 1 for lane in range(LANES)], bool)
            self.keep(to, np.where(chosen, *reversed(self._operands(line, words[:2]))))
        else:
            operands = self._operands(line, words, 64 if name in _WIDE else 32)
            with np.errstate(over="ignore"):
                self.keep(to, VECTOR[name](*operands))

    def _operands(self, line: Line, words: list[str], bits: int = 32) -> list[Lanes]:
        """With SDWA a part of each register stands for it."""
        operands = [self.lanes(word) & np.uint64((1 << bits) - 1) for word in words]
        assert (line.options.get("dst_sel", "DWORD"), line.options.get("dst_unused", "UNUSED_PAD")) == _WHOLE
        for k, operand in enumerate(operands):
            at, width = PARTS[line.options.get(f"src{k}_sel", "ALL")]
            operands[k] = operand >> np.uint64(at) & np.uint64((1 << width) - 1)
        return operands

    def _global(self, line: Line, name: str) -> None:
        kind, _, operation = name.partition("_")
        size = 4 * int((re.search(r"x(\d)$", name) or "11")[1])
        to, place, *rest = line.words if kind == "load" or "sc0" in line.options else ("", *line.words)
        base = line.offset() + (0 if rest[-1] == "off" else self.get(rest[-1]))
        near = self.lanes(place)
        at = {lane: base + int(near[lane]) for lane in self._on()}
        self.count.bytes += size * len(at)
        self._touch(list(at.values()), size)
        for lane, address in at.items():
            memory = self.launch.memory[address // BUFFER * BUFFER], address % BUFFER
            self._move(kind, operation, to, rest[:-1], size, memory, lane)

    def _lds(self, line: Line, name: str) -> None:
        kind, _, operation = name.partition("_")
        size = 4 * {"b64": 2}.get(name[-3:], 1)
        to, place, *data = line.words if kind.startswith("read") or "rtn" in name else ("", *line.words)
        offsets = [line.offset()]
        if twice := kind.endswith("2"):  # two accesses, each with an offset in its own unit
            offsets = [line.offset(key) * size for key in ("offset0", "offset1")]
        near, first = self.lanes(place), _span(to)[0] if to else 0
        kind = {"read": "load", "read2": "load", "write": "store", "write2": "store"}.get(kind, "atomic")
        for k, offset in enumerate(offsets):
            at = {lane: int(near[lane]) + offset for lane in self._on()}
            self.count.bytes += size * len(at)
            for half in (range(32), range(32, LANES)):
                words = {at[lane] // 4 for lane in half if lane in at}
                # A bank gives one word in a pass.
                of_bank = [sum(word % BANKS == bank for word in words) for bank in range(BANKS)]
                self.count.bank_conflict_passes += max(0, *of_bank, 1) - 1
            begin = first + k * size // 4
            into = f"v[{begin}:{begin + size // 4 - 1}]" if to else ""
            for lane, address in at.items():
                assert 0 <= address <= len(self.lds) - size
                given = data[k : k + 1] if twice else data
                self._move(kind, operation or name, into, given, size, (self.lds, address), lane)

    def _move(
        self,
        kind: str,
        operation: str,
        to: str,
        data: list[str],
        size: int,
        memory: tuple[bytearray, int],
        lane: int,
    ) -> None:
        """One lane; ``data`` of a comparison and exchange: what is compared, then what is written."""
        whole, at = memory
        old = int.from_bytes(whole[at : at + size], "little")
        given = [self._words(word, lane) for word in data]
        if kind == "store":
            whole[at : at + size] = given[0].to_bytes(size, "little")
        elif kind == "atomic":
            exchanged = "rtn_b32" in operation  # of those with a result only ds_cmpst is made
            new = (given[1] if old == given[0] else old) if exchanged else ATOMIC[operation](old, given[0])
            whole[at : at + size] = (new & _LOW).to_bytes(size, "little")
        if to:
            for k in range(size // 4):
                self.v[_span(to)[0] + k, lane] = old >> 32 * k & _LOW

    def _words(self, word: str, lane: int) -> int:
        first, count = _span(word)
        return sum(int(self.v[first + k, lane]) << 32 * k for k in range(count))

    def _touch(self, at: list[int], size: int) -> None:
        self.count.lines_64b += len({byte >> 6 for a in at for byte in range(a, a + size)})
        self.count.lines_128b += len({byte >> 7 for a in at for byte in range(a, a + size)})


def _span(word: str) -> tuple[int, int]:
    """Its first register and how many."""
    first, last = re.fullmatch(r"[sv](?:(\d+)|\[(\d+:\d+)\])", word).groups()  # type: ignore[union-attr]
    if first:
        return int(first), 1
    begin, end = map(int, last.split(":"))
    return begin, end - begin + 1
