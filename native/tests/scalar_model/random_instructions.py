"""Random instructions: operands of every kind, modifiers, and the values that the registers get."""

from __future__ import annotations

import random
from typing import Any

import attrs

from .drawing import Draw
from .instructions import EXEC, M0, SELECTIONS, VCC, CrossLane, Destination, Instruction, Source
from .machine import ACCUMULATORS, LDS_BYTES, SCALARS, VECTORS
from .number_formats import BF16, F16, F32, F64, Format
from .operations import FLOATS, OPERATIONS, WIDTHS, Operation, signed
from .vector_float import from_python

_REALS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)
_TURN = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}  # 1 / (2 pi)
_ADDRESSES = ("address", "own address", "lane address")
#: Two sources at most, and yet without a short form.
_LONG_ONLY = {
    "v_add_f64",
    "v_mul_f64",
    "v_min_f64",
    "v_max_f64",
    "v_ldexp_f32",
    "v_ldexp_f64",
    "v_mul_legacy_f32",
}
_LONG_ONLY |= {
    "v_mul_lo_u32",
    "v_mul_hi_u32",
    "v_mul_hi_i32",
    "v_bcnt_u32_b32",
    "v_bfm_b32",
    "v_add_i32",
    "v_sub_i32",
}
_LONG_ONLY |= {"v_lshlrev_b64", "v_lshrrev_b64", "v_ashrrev_i64", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"}
_LONG_ONLY |= {"v_cvt_pkrtz_f16_f32", "v_pack_b32_f16"}
_CLAMPED = ("H", "h", "f", "F", "q", "P")


@attrs.frozen
class Step:
    """``loads``: what registers are set to before the instruction."""

    loads: dict[str, Any]
    instruction: Instruction


def _words(letter: str) -> int:
    return int(letter) if letter.isdigit() else WIDTHS.get(letter, 32) // 32 or 1


@attrs.define
class _One:
    """Draws one instruction of an operation."""

    draw: Draw
    operation: Operation
    loads: dict[str, Any] = attrs.field(factory=dict)
    scalar_taken: bool = False

    def chance(self, share: float) -> bool:
        return self.draw.random.random() < share

    def pick(self, *choices: Any) -> Any:
        return self.draw.random.choice(choices)

    def index(self, limit: int, words: int) -> int:
        at = self.draw.random.randrange(limit - words + 1)
        return at & ~1 if words > 1 else at

    def hint(self, k: int) -> str:
        if "bfe" in self.operation.name and self.operation.group == "scalar" and k == 1:
            return "bit field"
        return self.operation.draw[k] if k < len(self.operation.draw) else ""

    # ---- operands ----------------------------------------------------------------------
    def vector(self, letter: str, hint: str = "") -> Source:
        words = _words(letter)
        at = self.index(VECTORS, words)
        self.load_row("v", at, letter, hint)
        return Source("v", at, words)

    def load_row(self, kind: str, at: int, letter: str, hint: str) -> None:
        words = _words(letter)
        rows = [self.draw.row("U" if words > 2 else letter, hint) for _ in range((words + 1) // 2)]
        for k in range(words):
            self.loads[f"{kind}{at + k}"] = [x >> 32 * (k & 1) & 0xFFFFFFFF for x in rows[k // 2]]

    def scalar(self, letter: str, hint: str = "") -> Source:
        words, r = _words(letter), self.draw.random
        at = self.index(SCALARS, words) if r.random() < 0.85 else r.choice((VCC, VCC, EXEC, M0))
        if at == M0 and words == 2:
            at = VCC
        if at != EXEC:
            value = self.draw.mask() if letter == "b" else self.draw.row(letter, hint)[0]
            self.loads |= {f"s{at + k}": value >> 32 * k & 0xFFFFFFFF for k in range(words)}
        return Source("s", at, words)

    def constant(self, letter: str) -> Source:
        """One of those that cost no room in the code."""
        width, f = WIDTHS.get(letter, 32), FLOATS.get(letter)
        if self.chance(0.5) or letter in "wk":
            value = self.draw.random.randint(-16, 64)
            return Source(
                "constant", words=width // 32 or 1, value=value & ((1 << width) - 1), text=str(value)
            )
        f = f or (F64 if width == 64 else F32)
        if self.chance(0.1):
            return Source(
                "constant", words=width // 32 or 1, value=_TURN[f.width], text="0.15915494309189532"
            )
        real = self.pick(*_REALS)
        return Source("constant", words=width // 32 or 1, value=from_python(f, real), text=str(real))

    def literal(self, letter: str) -> Source:
        value = self.draw.value("f" if letter == "f" else "u") & 0xFFFFFFFF
        if letter in "hw":
            value = self.draw.value(letter) & 0xFFFF
        elif letter == "U":
            value &= 0x7FFFFFFF
        if signed(value, 32) in range(-16, 65) or value in (0, 0x80000000):
            value = 0x1234
        return Source("constant", words=_words(letter), value=value, text=hex(value))

    def small(self, letter: str) -> Source:
        value = self.draw.integer(16)
        extended = signed(value, 16) & 0xFFFFFFFF if letter == "i" else value
        return Source("constant", value=extended, text=hex(value))

    def any_source(self, letter: str, hint: str, *, literals: bool) -> Source:
        how = self.draw.random.random()
        if how < 0.12 and not self.scalar_taken:
            self.scalar_taken = True
            return self.scalar(letter, hint)
        if how < 0.24 and letter not in "qP" and not hint:
            return self.constant(letter)
        if how < 0.34 and literals and not self.scalar_taken and letter in "ufhw":
            self.scalar_taken = True
            return self.literal(letter)
        return self.vector(letter, hint)

    def mask_source(self, form: str) -> Source:
        if form != "_e64":
            self.scalar("b")
            mask = self.draw.mask()
            self.loads |= {f"s{VCC + k}": mask >> 32 * k & 0xFFFFFFFF for k in range(2)}
            return Source("s", VCC, 2)
        self.scalar_taken = True
        source = self.scalar("b")
        return Source("s", VCC, 2) if source.index == EXEC else source

    def result(self, letter: str, form: str) -> Destination:
        words = _words(letter)
        if letter == "b":
            at = VCC if form != "_e64" or self.chance(0.3) else self.index(SCALARS, 2)
            return Destination("s", at, 2)
        if letter in "sS":
            at = VCC if self.chance(0.1) else self.index(SCALARS, words)
            self.loads |= {
                f"s{at + k}": self.draw.integer(32) for k in range(words) if f"s{at + k}" not in self.loads
            }
            return Destination("s", at, words)
        kind, limit = ("a", ACCUMULATORS) if letter == "a" else ("v", VECTORS)
        at = self.index(limit, words)
        drawn = {f"{kind}{at + k}" for k in range(words)} & self.loads.keys()
        if not drawn:
            self.load_row(kind, at, "u" if letter == "a" else letter, "")
        return Destination(kind, at, words)

    # ---- groups ----------------------------------------------------------------------
    def drawn(self) -> Step:
        make = getattr(self, f"{self.operation.group}_instruction")
        instruction: Instruction = make()
        self.loads["scc"] = self.draw.random.getrandbits(1)
        mask = self.draw.mask()
        self.loads |= {f"s{EXEC + k}": mask >> 32 * k & 0xFFFFFFFF for k in range(2)}
        return Step(self.loads, instruction)

    def scalar_instruction(self) -> Instruction:
        sources, literal = [], False
        immediate = self.operation.sources[-1:] in ("i", "j")
        for k, letter in enumerate(self.operation.sources):
            how = self.draw.random.random()
            if letter in "ij":
                sources.append(self.small(letter))
            elif how < 0.15 and not immediate:
                sources.append(self.constant(letter))
            elif how < 0.25 and not immediate and not literal:
                literal = True
                sources.append(self.literal(letter))
            else:
                sources.append(self.scalar(letter, self.hint(k)))
        if immediate and sources[0].index in (VCC, EXEC, M0) and len(sources) > 1:
            sources[0] = Source("s", 3, 1)
        self.alike(sources)
        results = tuple(self.result(x, "") for x in self.operation.results)
        return Instruction(self.operation, "", results, tuple(sources))

    def form(self) -> str:
        o = self.operation
        plain = [x for x in o.sources if x != "b"]
        if o.draw[-2:] == ("", "literal") or o.draw[1:] == ("literal", ""):
            return ""
        if (
            o.name.endswith("clamp")
            or len(plain) > 2
            or o.results[0] in "HWBk"
            or o.name.startswith("v_cvt_pk_")
        ):
            return "_e32" if o.name.startswith("v_cvt_pk_f32") else "_e64"
        narrow = all(WIDTHS.get(x, 32) <= 32 for x in plain)
        if "8 bits" in o.tags:
            return str(self.pick("_e32", "_sdwa"))
        if o.name in _LONG_ONLY:
            return "_e64"
        if not narrow or o.results[0] in "FUPq":
            return str(self.pick("_e32", "_e64"))
        if o.name.startswith("v_dot"):
            return "_e32"
        if o.results == "b":
            return str(self.pick("_e32", "_e64", "_sdwa" if "cmpx" not in o.name else "_e32"))
        return str(self.pick("_e32", "_e32", "_e64", "_e64", "_sdwa", "_dpp"))

    def vector_instruction(self) -> Instruction:
        form, o = self.form(), self.operation
        results_first = {"same": None}.get(self.hint(0), 0)
        sources: list[Source] = []
        if (form != "_e64" and "b" in o.sources) or "div_fmas" in o.name:
            self.scalar_taken = True  # VCC
        if form == "_e64" and "b" in o.sources:
            mask = self.mask_source(form)
        for k, letter in enumerate(o.sources):
            if letter == "b":
                sources.append(mask if form == "_e64" else self.mask_source(form))
            else:
                sources.append(self.vector_source(k, letter, form))
        if results_first is None:
            sources[0] = self.pick(*sources[1:])
        self.alike(sources)
        results = tuple(self.result(x, form) for x in o.results)
        more: dict[str, Any] = getattr(self, f"modifiers{form}", dict)()
        sources = [self.modified(x, letter, form) for x, letter in zip(sources, o.sources, strict=True)]
        self.mode()
        if "div_fmas" in o.name:
            self.mask_source("")
        return Instruction(o, form, results, tuple(sources), **more)

    def alike(self, sources: list[Source]) -> None:
        """Some lanes, or scalars, of the first two sources hold the same: what comparisons live on."""
        same = self.operation.sources[:2] == 2 * self.operation.sources[:1] and len(sources) > 1
        if not same or sources[0].kind != sources[1].kind or sources[0].kind == "constant":
            return
        names = [[f"{x.kind}{x.index + k}" for k in range(x.words)] for x in sources[:2]]
        if any(name not in self.loads for pair in names for name in pair):
            return
        for lane in range(64) if sources[0].kind == "v" else range(1):
            for a, b in zip(*names, strict=True) if self.chance(0.25) else ():
                if sources[0].kind == "v":
                    self.loads[b][lane] = self.loads[a][lane]
                else:
                    self.loads[b] = self.loads[a]

    def vector_source(self, k: int, letter: str, form: str) -> Source:
        hint = self.hint(k)
        if hint == "literal":
            self.scalar_taken = True
            return self.literal(letter)
        if form == "_e64" and not hint:
            return self.any_source(letter, hint, literals=False)
        if k == 0 and form in ("_e32", "") and "literal" not in self.operation.draw:
            return self.any_source(letter, hint, literals=form == "_e32")
        return self.vector(letter, hint)

    def mode(self) -> None:
        """Which denormals are flushed, and where results are rounded to."""
        floats = set(self.operation.sources + self.operation.results) & set("fFhHqPm")
        if (
            floats
            and not self.operation.tags & {"approximate", "plain", "no clamp", "8 bits"}
            and self.chance(0.3)
        ):
            flush = self.draw.random.getrandbits(4) if self.chance(0.6) else 15
            self.loads["mode"] = (
                0x300 | flush << 4 | (self.draw.random.getrandbits(4) if self.chance(0.6) else 0)
            )

    def modifiers_e64(self) -> dict[str, Any]:
        more: dict[str, Any] = {}
        letter = self.operation.results[0]
        if (
            letter in _CLAMPED
            and not self.operation.tags & {"8 bits", "plain", "no clamp"}
            and self.chance(0.15)
        ):
            more["clamp"] = True
        if letter in "HW" and self.chance(0.4):
            more["high"] = True
        if letter == "B":
            more["byte"] = self.draw.random.randrange(4)
        return more

    def modifiers_sdwa(self) -> dict[str, Any]:
        letter = self.operation.results[0]
        if letter not in "uwh" or "8 bits" in self.operation.tags:
            return {}
        select = self.pick(*(SELECTIONS if letter in "uw" else SELECTIONS[4:]))
        unused = ("PAD", "SEXT", "PRESERVE") if letter in "uw" else ("PAD", "PRESERVE")
        return {"select": select, "unused": self.pick(*unused)}

    def modifiers_dpp(self) -> dict[str, Any]:
        n = self.draw.random.randint(1, 15)
        choices = [("quad_perm", tuple(self.draw.random.randrange(4) for _ in range(4)))]
        choices += [(name, (n,)) for name in ("row_shl", "row_shr", "row_ror", "row_newbcast")]
        choices += [(name, (1,)) for name in ("wave_shl", "wave_shr", "wave_rol", "wave_ror")]
        choices += [("row_mirror", ()), ("row_half_mirror", ()), ("row_bcast", (15,)), ("row_bcast", (31,))]
        control, amount = self.pick(*choices)
        whole = self.chance(0.6)
        rows, banks = (15, 15) if whole else (self.draw.random.randrange(16), self.draw.random.randrange(16))
        return {"cross_lane": CrossLane(control, amount, rows, banks, self.chance(0.5))}

    def modified(self, source: Source, letter: str, form: str) -> Source:
        o = self.operation
        is_float = letter in "fFhH" or (letter == "u" and "sign of bits" in o.tags)
        more: dict[str, Any] = {}
        if is_float and form in ("_e64", "_sdwa", "_dpp") and source.kind != "constant":
            more |= {"negate": self.chance(0.25), "absolute": self.chance(0.25)}
        if o.tags & {"8 bits", "plain"}:
            more = {}
        if form == "_sdwa" and letter != "b":
            more |= self.selection(letter)
        if form == "_e64" and letter in "hw" and self.takes_halves() and source.kind == "v":
            more["high"] = self.chance(0.4)
        return attrs.evolve(source, **more)

    def takes_halves(self) -> bool:
        o = self.operation
        return o.results[0] in "HW" or o.name in ("v_mad_u32_u16", "v_mad_i32_i16", "v_pack_b32_f16")

    def selection(self, letter: str) -> dict[str, Any]:
        if "8 bits" in self.operation.tags:
            pair = self.operation.name.startswith("v_cvt_pk")
            return {"select": self.pick(*(SELECTIONS[4:6] if pair else SELECTIONS[:4]))}
        if letter == "f":
            return {"select": "DWORD"}
        if letter == "h":
            return {"select": self.pick(*SELECTIONS[4:])}
        extends = "sign of bits" not in self.operation.tags and self.chance(0.4)
        return {"select": self.pick(*SELECTIONS), "extend": extends}

    def packed_instruction(self) -> Instruction:
        o, sources = self.operation, []
        for letter in o.sources:
            source = self.any_source(letter, "", literals=False)
            number = source.kind == "constant"
            more = {
                "high": not number and self.chance(0.3),
                "high_from_high": not number and self.chance(0.7),
            }
            if letter in "qP":
                more |= {"negate": self.chance(0.25), "negate_high": self.chance(0.25)}
            sources.append(attrs.evolve(source, **more))
        results = (self.result(o.results, "_e64"),)
        clamp = o.results in "qP" and self.chance(0.15)
        self.mode()
        return Instruction(o, "", results, tuple(sources), clamp=clamp)

    def mixed_instruction(self) -> Instruction:
        o, sources = self.operation, []
        for letter in o.sources:
            more = {k: self.chance(0.35) for k in ("high", "high_from_high", "negate", "absolute")}
            sources.append(attrs.evolve(self.vector(letter), **more))
        high = "mixhi" in o.name
        self.mode()
        return Instruction(
            o, "", (self.result(o.results, ""),), tuple(sources), high=high, clamp=self.chance(0.15)
        )

    def dot_instruction(self) -> Instruction:
        sources = [self.vector(x, self.hint(k)) for k, x in enumerate(self.operation.sources)]
        return Instruction(self.operation, "", (self.result(self.operation.results, ""),), tuple(sources))

    # ---- the whole wave ----------------------------------------------------------------------
    def wave_instruction(self) -> Instruction:
        o = self.operation
        sources = [self.wave_source(k, letter) for k, letter in enumerate(o.sources)]
        addressed = self.hint(0) in _ADDRESSES
        if addressed and len({x.index + k for x in sources for k in range(x.words)}) < sum(
            x.words for x in sources
        ):
            sources = [attrs.evolve(x, index=4 * k) for k, x in enumerate(sources)]
            for k, letter in enumerate(o.sources):
                self.load_row("v", 4 * k, "u" if letter == "a" else letter, self.hint(k))
        results = tuple(self.result(x, "") for x in o.results)
        if o.name == "v_swap_b32" and results[0].index == sources[0].index:
            sources[0] = Source("v", (results[0].index + 1) % VECTORS)
        offset = self.offsets() if o.name.startswith("ds_") else ()
        instruction = Instruction(o, "", results, tuple(sources), offset=offset)
        if self.hint(0) in ("address", "own address"):
            self.memory(instruction)
        return instruction

    def wave_source(self, k: int, letter: str) -> Source:
        hint = self.hint(k)
        if hint in _ADDRESSES:
            source = Source("v", self.index(VECTORS, 1))
            self.loads[f"v{source.index}"] = self.draw.row("u", hint)
            return source
        if letter == "a":
            at = self.index(ACCUMULATORS, 1)
            self.load_row("a", at, "u", "")
            return Source("a", at)
        if hint == "lane":
            lane = self.draw.random.randrange(64)
            if self.chance(0.5):
                return Source("constant", value=lane, text=str(lane))
            self.loads["s6"] = lane | self.draw.random.getrandbits(26) << 6
            return Source("s", 6)
        if hint == "scalar":
            if self.chance(0.5):
                return self.constant("u")
            self.loads["s6"] = self.loads.get("s6", self.draw.integer(32))
            return Source("s", 6)
        return self.vector(letter, hint)

    def offsets(self) -> tuple[int, ...]:
        name, r = self.operation.name, self.draw.random
        if name == "ds_swizzle_b32":
            return (
                r.choice(
                    (
                        r.getrandbits(15),
                        0x8000 | r.getrandbits(8),
                        0xC000 | r.getrandbits(11),
                        0xE000 | r.getrandbits(5),
                    )
                ),
            )
        if "permute" in name:
            return (r.choice((0, 0, 4, 64, 252)),)
        if "2st64" in name:
            pair = (0, 2) if "b64" in name else (0, 4)
            return pair if r.random() < 0.5 else pair[::-1]
        if "2_b" in name:
            a, b = r.sample(range(2 if "b64" in name else 4), 2)
            return (a, b)
        return (16 * r.randrange(33),)

    def memory(self, i: Instruction) -> None:
        """Content of LDS; for compare and swap data that is there, for floats finite numbers."""
        r, name = self.draw.random, self.operation.name
        f = _format_in_memory(name) if "floats in memory" in self.operation.tags else None
        if f is None:
            lds = bytearray(r.randbytes(LDS_BYTES))
        else:
            numbers = (
                self.draw.finite(f).to_bytes(f.width // 8, "little") for _ in range(8 * LDS_BYTES // f.width)
            )
            lds = bytearray(b"".join(numbers))
            self.finite_data(i.sources[1], f)
        if self.hint(1) == "in memory":
            self.compared_data(i, lds)
        elif "inc" in name or "dec" in name or "_min" in name:
            for at in range(0, LDS_BYTES, 16):
                lds[at : at + 8] = (
                    self.draw.integer(64).to_bytes(8, "little") if f is None else lds[at : at + 8]
                )
        self.loads["lds"] = bytes(lds)

    def finite_data(self, source: Source, f: Format) -> None:
        for k in range(source.words):
            self.loads[f"v{source.index + k}"] = []
        for _ in range(64):
            bits = self.draw.finite(f) | (self.draw.finite(f) << 16 if f.width == 16 else 0)
            for k in range(source.words):
                self.loads[f"v{source.index + k}"].append(bits >> 32 * k & 0xFFFFFFFF)

    def compared_data(self, i: Instruction, lds: bytearray) -> None:
        addresses, data = self.loads[f"v{i.sources[0].index}"], i.sources[1]
        for lane, address in enumerate(addresses):
            if self.chance(0.6):
                at = address + i.offset[0]
                bits = int.from_bytes(lds[at : at + 4 * data.words], "little")
                for k in range(data.words):
                    self.loads[f"v{data.index + k}"][lane] = bits >> 32 * k & 0xFFFFFFFF


def _format_in_memory(name: str) -> Format:
    return next(
        f for suffix, f in (("bf16", BF16), ("f16", F16), ("f32", F32), ("f64", F64)) if name.endswith(suffix)
    )


def step_of(draw: Draw, name: str) -> Step:
    return _One(draw, OPERATIONS[name]).drawn()


#: Of the test command: the seed, and how often each opcode is drawn.
SEED, EACH = 21, 2


def every_opcode(seed: int = SEED, each: int = EACH) -> list[Step]:
    draw = Draw(random.Random(seed))
    steps = [step_of(draw, name) for name in sorted(OPERATIONS) for _ in range(each)]
    # One of each sees all lanes.
    all_lanes = {f"s{EXEC + k}": 0xFFFFFFFF for k in range(2)}
    return [x if k % each else attrs.evolve(x, loads=x.loads | all_lanes) for k, x in enumerate(steps)]


def start(draw: Draw) -> dict[str, Any]:
    """Everything that an instruction may read."""
    loads: dict[str, Any] = {
        f"v{k}": [draw.value(draw.random.choice("ufq")) & 0xFFFFFFFF for _ in range(64)]
        for k in range(VECTORS)
    }
    loads |= {f"a{k}": [draw.integer(32) for _ in range(64)] for k in range(ACCUMULATORS)}
    loads |= {f"s{k}": draw.integer(32) for k in (*range(SCALARS), VCC, VCC + 1, M0)}
    return loads | {"lds": draw.random.randbytes(LDS_BYTES), "mode": 0x3F0}


#: What a stream without fresh values leaves out: wild addresses, and ever fewer lanes.
def _for_streams() -> list[str]:
    return [
        name
        for name, o in OPERATIONS.items()
        if "writes exec" not in o.wants and (o.draw[:1] or ("",))[0] not in ("address", "own address")
    ]


def stream(draw: Draw, length: int, *, fresh: bool) -> tuple[dict[str, Any], list[Step]]:
    """``fresh``: some registers get new values before each instruction."""
    names = sorted(OPERATIONS) if fresh else _for_streams()
    first = start(draw)
    mask = draw.mask()
    first |= {"scc": 0, **{f"s{EXEC + k}": mask >> 32 * k & 0xFFFFFFFF for k in range(2)}}
    steps = [step_of(draw, draw.random.choice(names)) for _ in range(length)]
    return first, [attrs.evolve(x, loads=_kept(draw, x) if fresh else {}) for x in steps]


def _kept(draw: Draw, step: Step) -> dict[str, Any]:
    if step.instruction.operation.draw[:1] in (("address",), ("own address",)):
        return step.loads
    return {
        name: value for name, value in step.loads.items() if name != "mode" and draw.random.random() < 0.35
    }
