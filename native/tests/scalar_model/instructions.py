"""One instruction with its operands: as assembly, and as the model reads it."""

from __future__ import annotations

import attrs

from .operations import Operation

#: Scalar registers that have names.
VCC, M0, EXEC = 106, 124, 126
SELECTIONS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")


def register(kind: str, index: int, words: int) -> str:
    if kind == "s" and index in (VCC, EXEC):
        return {VCC: "vcc", EXEC: "exec"}[index] + ("" if words == 2 else "_lo")
    if kind == "s" and index == M0:
        return "m0"
    return f"{kind}{index}" if words == 1 else f"{kind}[{index}:{index + words - 1}]"


@attrs.frozen
class Source:
    """``kind``: v, s, a (accumulator) or constant, ``value`` its bits, ``text`` how it is written."""

    kind: str
    index: int = 0
    words: int = 1
    value: int = 0
    text: str = ""
    negate: bool = False
    absolute: bool = False
    extend: bool = False
    select: str = ""
    high: bool = False  # op_sel
    high_from_high: bool = True  # op_sel_hi
    negate_high: bool = False

    @property
    def assembly(self) -> str:
        text = self.text if self.kind == "constant" else register(self.kind, self.index, self.words)
        if self.extend:
            return f"sext({text})"
        text = f"|{text}|" if self.absolute else text
        return f"-{text}" if self.negate else text


@attrs.frozen
class Destination:
    kind: str
    index: int
    words: int = 1

    @property
    def assembly(self) -> str:
        return register(self.kind, self.index, self.words)


@attrs.frozen
class CrossLane:
    """Data parallel primitives: which lane's first source a lane reads."""

    control: str
    amount: tuple[int, ...] = ()
    rows: int = 15
    banks: int = 15
    bound: bool = False

    @property
    def assembly(self) -> str:
        amount = {"quad_perm": f":[{','.join(map(str, self.amount))}]"}.get(
            self.control, "".join(f":{n}" for n in self.amount)
        )
        bound = " bound_ctrl:0" if self.bound else ""
        return f"{self.control}{amount} row_mask:0x{self.rows:x} bank_mask:0x{self.banks:x}{bound}"

    def lane(self, at: int) -> int | None:
        row, place = at & ~15, at & 15
        n = self.amount[0] if self.amount else 0
        if self.control == "quad_perm":
            return at & ~3 | self.amount[at & 3]
        inside = {"row_shl": place + n, "row_shr": place - n}.get(self.control)
        if inside is not None:
            return row | inside if 0 <= inside < 16 else None
        if self.control == "row_bcast":
            return _broadcast(at, n)
        moved = {
            "row_ror": row | (place - n) % 16,
            "row_mirror": row | 15 - place,
            "row_half_mirror": at & ~7 | 7 - (at & 7),
            "row_newbcast": row | n,
            "wave_rol": (at + 1) % 64,
            "wave_ror": (at - 1) % 64,
            "wave_shl": at + 1,
            "wave_shr": at - 1,
        }[self.control]
        return moved if 0 <= moved < 64 else None


def _broadcast(at: int, last: int) -> int | None:
    """The last lane of a row goes to the next row, or that of the first half to the second half."""
    if last == 31:
        return 31 if at >= 32 else None
    return (at & ~15) - 1 if at >= 16 else None


@attrs.frozen
class Instruction:
    operation: Operation
    form: str  # "", _e32, _e64, _sdwa, _dpp
    results: tuple[Destination, ...]
    sources: tuple[Source, ...]
    select: str = ""
    unused: str = ""
    high: bool = False
    byte: int = 0  # of an 8-bit float in its register, or half of two
    cross_lane: CrossLane | None = None
    clamp: bool = False
    offset: tuple[int, ...] = ()

    @property
    def assembly(self) -> str:
        name, _, integer_clamp = self.operation.name.partition(" ")
        packed = self.operation.group == "packed"  # which has its own lists of signs
        sources = [attrs.evolve(x, negate=False) if packed else x for x in self.sources]
        words = [x.assembly for x in (*self.results, *sources)]
        parts = [f"{name}{self.form} {', '.join(words)}".rstrip(), *self._modifiers()]
        if self.clamp or integer_clamp:
            parts.append("clamp")
        return " ".join(parts)

    def _modifiers(self) -> list[str]:
        parts = []
        if self.operation.group in ("packed", "mixed"):
            parts += self._lists()
        elif self.operation.results == "B":
            parts.append(f"op_sel:[0,0,{self.byte & 1},{self.byte >> 1}]")
        elif self.form == "_e64" and (self.high or any(x.high for x in self.sources)):
            parts.append(f"op_sel:[{','.join(str(int(x.high)) for x in self.sources)},{int(self.high)}]")
        if self.form == "_sdwa":
            if self.select:
                parts += [f"dst_sel:{self.select}", f"dst_unused:UNUSED_{self.unused}"]
            parts += [f"src{k}_sel:{x.select}" for k, x in enumerate(self.sources) if x.select]
        if self.cross_lane:
            parts.append(self.cross_lane.assembly)
        if self.offset:
            names = ("offset",) if len(self.offset) == 1 else ("offset0", "offset1")
            parts += [f"{name}:{n}" for name, n in zip(names, self.offset, strict=True) if n]
        return parts

    def _lists(self) -> list[str]:
        def bits(name: str, values: list[bool]) -> str:
            return f"{name}:[{','.join(str(int(x)) for x in values)}]"

        s = self.sources
        found = [bits("op_sel", [x.high for x in s]), bits("op_sel_hi", [x.high_from_high for x in s])]
        if self.operation.group == "packed" and self.operation.results in "qP":
            found += [bits("neg_lo", [x.negate for x in s]), bits("neg_hi", [x.negate_high for x in s])]
        return found
