"""Draws HIP kernels whose result is one only: no undefined behaviour, no order of work-items that matters.

Integers are added and multiplied as unsigned ones, shifts masked, divisors never 0 and quotients never too
large, indices masked, loops bounded, variables initialised. Floats meet only what is exact or rounded once
(+ - * /, sqrt, fma, conversions), and no NaN lives longer than its operation. Barriers, exchanges through LDS
or memory, shuffles and ballots stand only where all work-items of a workgroup get to; of a word that several
change, all change it by the same atomic operation. So the same text as x86 code is an oracle, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs

INTEGERS = {"u8": 8, "i8": 8, "u16": 16, "i16": 16, "u32": 32, "i32": 32, "u64": 64, "i64": 64}
FLOATS = ("half", "float", "double")
TYPES = (*INTEGERS, *FLOATS)
#: Common types more often.
_DRAWN_TYPES = ("u32",) * 4 + ("i32",) * 2 + ("u64", "i64", "float", "float", "double") + TYPES
#: Where an input of a type is read; what is narrower is cut off.
_INPUTS = {"u64": "l", "i64": "l", "half": "h", "float": "f", "double": "d"}
#: Words of ``Out.shared``, of words of LDS, and of each of their parts, which one operation changes.
_SHARED, _CELLS, _PARTS = 1024, 64, 4
_ATOMICS = ("add", "or", "xor", "and", "min", "max")
#: Work-items that a launch has at the most: one word of ``Out`` each.
_ITEMS = 1024
_BLOCKS = (64, 128, 192, 256, 40, 96, 200)


@attrs.frozen
class DrawnKernel:
    """``text`` needs drawn.h; a launch has ``groups`` workgroups of ``block`` work-items."""

    seed: int
    name: str
    text: str
    groups: int
    block: int


def drawn_kernel(seed: int) -> DrawnKernel:
    """The same kernel for the same seed, on each machine."""
    return _Drawing(seed).kernel()


def source(kernels: list[DrawnKernel]) -> str:
    """One text for both compilers."""
    return "\n".join(['#include "drawn.h"', *(kernel.text for kernel in kernels)])


class _Drawing:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.scopes: list[list[tuple[str, str]]] = [[]]  # name and type of what can be read and changed here
        self.arrays: list[tuple[str, str, int]] = []
        self.helpers: list[tuple[str, str, tuple[str, ...]]] = []
        self.names = 0
        self.loops = 0
        self.together = True  # all work-items of the workgroup get here, the same number of times
        self.in_kernel = True
        self.block = self.random.choice(_BLOCKS)
        self.groups = self.random.randint(2, min(5, _ITEMS // self.block))
        operations = [self.random.choice(_ATOMICS) for _ in range(3 * _PARTS)]
        self.shared, self.words, self.long_words = (operations[i::3] for i in range(3))

    def kernel(self) -> DrawnKernel:
        name = f"drawn_{self.seed}"
        table = ", ".join(f"0x{self.random.getrandbits(32):x}u" for _ in range(16))
        self.write(f"DEVICE const u32 table_{self.seed}[16] = {{{table}}};")
        for _ in range(self.random.randint(0, 2)):
            self.helper()
        self.write(f"KERNEL({name}) {{")
        self.write("u64 hash = 0;")  # of all that was computed
        self.write("__shared__ u64 lds[256];")
        self.write(f"__shared__ u32 words[{_CELLS}];")
        self.write(f"__shared__ u64 long_words[{_CELLS}];")
        self.write(f"__shared__ float sums[{_CELLS}];")
        start = self.random.getrandbits(20)
        self.write(f"for (int k = THREAD; k < {_CELLS}; k += BLOCK) {{")
        self.write(f"words[k] = u32(k) * {start}u, long_words[k] = u64(k) << 33 | {start}u, sums[k] = 0;")
        self.write("}")
        self.write("BARRIER();")
        for type_ in ("u32", "i32", "u64", "float"):
            self.declare(type_)
        for _ in range(self.random.randint(1, 2)):
            self.declare_array()
        for _ in range(self.random.randint(7, 12)):
            self.statement(depth=2)
        self.write("BARRIER();")
        for array in ("words", "long_words", "sums"):
            self.write(f"hash = mixed(hash, bits({array}[ITEM % {_CELLS}]));")
        self.hash_scope()
        for array, _, size in self.arrays:
            self.write(f"for (int k = 0; k < {size}; ++k) hash = mixed(hash, bits({array}[k]));")
        self.write("out->l[ITEM] = hash;")
        self.write("}")
        return DrawnKernel(self.seed, name, "\n".join(self.lines) + "\n", self.groups, self.block)

    def helper(self) -> None:
        """A function that is called, not inlined; it knows its arguments only."""
        name = f"helper_{self.seed}_{len(self.helpers)}"
        takes = tuple(self.random.choice(_DRAWN_TYPES) for _ in range(self.random.randint(1, 4)))
        gives = self.random.choice(_DRAWN_TYPES)
        self.write(f"DEVICE_CALL {gives} {name}({', '.join(f'{t} a{k}' for k, t in enumerate(takes))}) {{")
        self.write("u64 hash = 0;")
        self.scopes = [[("hash", "u64"), *((f"a{k}", t) for k, t in enumerate(takes))]]
        self.in_kernel = self.together = False
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth=1)
        self.write(f"return {self.expression(gives, 2)};")
        self.write("}")
        self.scopes, self.arrays = [[]], []
        self.in_kernel = self.together = True
        self.helpers.append((name, gives, takes))

    # statements

    def statement(self, depth: int) -> None:
        kinds: list[tuple[int, Callable[[], None]]] = [
            (4, lambda: self.declare(self.random.choice(_DRAWN_TYPES))),
            (6, self.assign),
        ]
        if self.arrays:
            kinds.append((3, self.store))
        if self.in_kernel:
            kinds.append((3, self.atomic))
        if depth:
            kinds += [
                (5, lambda: self.branch(depth)),
                (2, lambda: self.switch(depth)),
                (4, lambda: self.loop(depth)),
            ]
        if self.together:
            kinds += [(3, self.exchange), (3, self.across_lanes)]
        weights = [weight for weight, _ in kinds]
        self.random.choices([kind for _, kind in kinds], weights)[0]()

    def declare(self, type_: str) -> None:
        value, name = self.expression(type_, 2), self.name("v")
        self.write(f"{type_} {name} = {value};")
        self.scopes[-1].append((name, type_))

    def declare_array(self) -> None:
        type_, size, name = self.random.choice(_DRAWN_TYPES), self.random.choice((4, 8, 16)), self.name("a")
        self.write(f"{type_} {name}[{size}];")
        self.write(f"for (int k = 0; k < {size}; ++k) {name}[k] = {type_}(k * 3);")
        self.arrays.append((name, type_, size))

    def assign(self) -> None:
        name, type_ = self.random.choice([one for scope in self.scopes for one in scope])
        if name != "hash" and self.random.random() < 0.5:  # else what it held may have been for nothing
            self.write(f"hash = mixed(hash, bits({name}));")
        self.write(f"{name} = {self.expression(type_, 3)};")

    def store(self) -> None:
        name, type_, size = self.random.choice(self.arrays)
        self.write(f"{name}[{self.index(size)}] = {self.expression(type_, 2)};")

    def atomic(self) -> None:
        if self.random.random() < 0.25:
            cell, value = self.index(_CELLS), self.expression("u32", 1)
            # Whole numbers: below 2^24 their sum is exact in each order.
            self.write(f"__atomic_fetch_add(&sums[{cell}], float({value} & 15), __ATOMIC_RELAXED);")
            return
        part = self.random.randrange(_PARTS)
        operations, array, size, width = self.random.choice(
            (
                (self.shared, "out->shared", _SHARED, 32),
                (self.words, "words", _CELLS, 32),
                (self.long_words, "long_words", _CELLS, 64),
            )
        )
        type_ = f"{'u' if part % 2 else 'i'}{width}"
        cell = f"({type_}*)&{array}[{part * size // _PARTS} + {self.index(size // _PARTS)}]"
        value = self.expression(type_, 2)
        self.write(f"__atomic_fetch_{operations[part]}({cell}, {value}, __ATOMIC_RELAXED);")

    def exchange(self) -> None:
        """Each work-item writes one word and reads another's, by a permutation of the workgroup."""
        type_ = self.random.choice(_DRAWN_TYPES)
        value, name = self.expression(type_, 2), self.name("v")
        place = f"(({type_}*)lds)["
        if self.random.random() < 0.3:
            type_, value, place = "u64", f"bits({value})", "out->l[GROUP * BLOCK + "
        self.write("BARRIER();")
        self.write(f"{place}{self.permuted()}] = {value};")
        self.write("BARRIER();")
        self.write(f"{type_} {name} = {place}{self.permuted()}];")
        self.scopes[-1].append((name, type_))

    def permuted(self) -> str:
        """A place of the workgroup for each work-item, no two the same."""
        factor = self.random.choice([k for k in range(1, 64) if k % 2 and k % 3 and k % 5])
        return f"(THREAD * {factor} + {self.random.randrange(self.block)}) % BLOCK"

    def across_lanes(self) -> None:
        name = self.name("v")
        if self.random.random() < 0.4:
            self.write(f"u64 {name} = BALLOT({self.condition(1)});")
            self.scopes[-1].append((name, "u64"))
            return
        value, lane = self.expression("u32", 2), self.expression("u32", 1)
        self.write(f"u32 {name} = SHFL({value}, int({lane} % LANES));")
        self.scopes[-1].append((name, "u32"))

    def branch(self, depth: int) -> None:
        """By the workgroup, which keeps its work-items together, or by the work-item."""
        whole = self.together and self.random.random() < 0.3
        bit = 1 << self.random.randrange(2)
        self.write(f"if ({f'GROUP & {bit}' if whole else self.condition(2)}) {{")
        self.body(depth, whole)
        if self.random.random() < 0.5:
            self.write("} else {")
            self.body(depth, whole)
        self.write("}")

    def switch(self, depth: int) -> None:
        cases = self.random.choice((2, 4, 8))
        self.write(f"switch (u32({self.expression('u32', 2)}) % {cases}) {{")
        for case in sorted(self.random.sample(range(cases), self.random.randint(1, cases))):
            self.write(f"case {case}: {{")
            self.body(depth - 1, together=False)
            self.write("}" if self.random.random() < 0.3 else "} break;")  # the first goes on into the next
        self.write("default: {")
        self.body(depth - 1, together=False)
        self.write("}")
        self.write("}")

    def loop(self, depth: int) -> None:
        if self.loops == 2:
            self.assign()
            return
        whole = self.together and self.random.random() < 0.4
        name = self.name("k")
        trips = str(self.random.randint(1, 5))
        if not whole:
            least, drawn = self.random.randrange(2), self.expression("u32", 1)
            trips = f"{least} + ({drawn} & {self.random.choice((3, 7, 11))})"
        end = self.name("n")
        self.write(f"const u32 {end} = {trips};")
        also = "" if whole or self.random.random() < 0.7 else f" && {self.condition(1)}"
        self.write(f"for (u32 {name} = 0; {name} < {end}{also}; ++{name}) {{")
        self.loops += 1
        leaves = None if whole else self.random.choice((None, "break", "continue"))
        if leaves == "continue":
            self.write(f"if ({self.condition(1)}) continue;")
        self.body(depth, whole, counter=name)
        if leaves == "break":
            self.write(f"if ({self.condition(1)}) break;")
        self.loops -= 1
        self.write("}")

    def body(self, depth: int, together: bool, counter: str = "") -> None:
        before = self.together
        self.together = together
        self.scopes.append([])
        if counter:  # a copy: if statements could change itself, nothing would bound the loop
            name = self.name("v")
            self.write(f"u32 {name} = {counter};")
            self.scopes[-1].append((name, "u32"))
        for _ in range(self.random.randint(1, 3)):
            self.statement(max(depth - 1, 0))
        self.hash_scope()
        self.scopes.pop()
        self.together = before

    # expressions

    def expression(self, type_: str, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf(type_)
        if self.random.random() < 0.15:
            return self.from_elsewhere(type_, depth)
        return self.whole(type_, depth) if type_ in INTEGERS else self.floating(type_, depth)

    def leaf(self, type_: str) -> str:
        known = [name for scope in self.scopes for name, of in scope if of == type_]
        if known and self.random.random() < 0.65:
            return self.random.choice(known)
        if self.in_kernel and self.random.random() < 0.8:
            at = f"(ITEM * {self.random.randrange(1, 64)} + {self.random.randrange(1024)}) & (COUNT - 1)"
            if type_ == "u32" and self.random.random() < 0.2:
                return f"u32({self.random.choice(('ITEM', 'THREAD', 'GROUP', 'LANE'))})"
            read = f"in->{_INPUTS.get(type_, self.random.choice(('u', 'u', 'small')))}[{at}]"
            return read if type_ in FLOATS else f"{type_}({read})"
        if type_ in FLOATS:
            return f"{type_}({self.random.choice((0, 1, -1, 0.5, 3, 0.1, 1000, -7.25))})"
        width = INTEGERS[type_]
        most, top = 2**width - 1, 2 ** (width - 1)
        edges = (0, 1, most, top, top - 1)
        number = self.random.choice((*edges, *(self.random.getrandbits(width) for _ in edges)))
        return f"{type_}({number}u{'ll' if width == 64 else ''})"

    def from_elsewhere(self, type_: str, depth: int) -> str:
        """Of another type, from an array, a table, or a function."""
        ways: list[tuple[str, int | tuple[str, ...]]] = [("", 0)]
        ways += [(name, size) for name, of, size in self.arrays if of == type_]
        ways += [(name, takes) for name, gives, takes in self.helpers if gives == type_]
        if type_ == "u32":
            ways.append((f"table_{self.seed}", 16))
        name, given = self.random.choice(ways)
        if not name:
            return self.converted(type_, depth)
        if isinstance(given, int):
            return f"{name}[{self.index(given)}]"
        return f"{name}({', '.join(self.expression(one, 1) for one in given)})"

    def converted(self, type_: str, depth: int) -> str:
        of = self.random.choice([one for one in TYPES if one != type_])
        value = self.expression(of, depth - 1)
        if type_ in INTEGERS:
            if of in INTEGERS:
                return f"{type_}({value})"
            if self.random.random() < 0.3:
                return f"{type_}(bits({value}))"
            return f"whole<{type_}>({'float' if of == 'half' else of}({value}))"
        if self.random.random() < 0.3:
            pattern, width = {"half": ("u16", 16), "float": ("u32", 32), "double": ("u64", 64)}[type_]
            return f"fine(__builtin_bit_cast({type_}, {pattern}({self.expression(f'u{width}', depth - 1)})))"
        if type_ == "half" and of != "float":  # by way of a float these would be rounded twice
            return f"half(i8({self.expression('i8', depth - 1)}))"
        return f"{type_}({value})"

    def whole(self, type_: str, depth: int) -> str:
        width = INTEGERS[type_]
        wide = "u64" if width == 64 else "u32"
        a = self.expression(type_, depth - 1)
        kind = self.random.randrange(14)
        if kind == 0:
            return f"({self.condition(depth - 1)} ? {a} : {self.expression(type_, depth - 1)})"
        if kind == 1:
            name = self.random.choice(("__builtin_popcountll", "trailing_zeros", "leading_zeros"))
            return f"{type_}({name}({a}))"
        if kind == 2:
            name = self.random.choice(("__builtin_bitreverse", "__builtin_bswap"))
            return f"{type_}({name}{max(width, 32)}({wide}({a})))"
        b = self.expression(type_, depth - 1)
        if kind == 3:
            return f"{type_}({wide}({a}) << ({b} & {width - 1}))"
        if kind == 4:
            return f"{type_}({a} >> ({b} & {width - 1}))"
        if kind == 5:
            return f"{type_}(__builtin_rotateleft{max(width, 32)}({wide}({a}), {wide}({b})))"
        if kind == 6:
            if type_[0] == "u" or self.random.random() < 0.5:
                divisor = f"(({b} & {2 ** (width - 1) - 1}{'ll' if width == 64 else ''}) | 1)"
            else:
                divisor = f"(-2 - ({b} & 63))"  # never -1, by which the least number has no quotient
            return f"{type_}({a} {self.random.choice('/%')} {type_}{divisor})"
        if kind == 7:
            return f"{self.random.choice(('least', 'most'))}<{type_}>({a}, {b})"
        if kind == 8:
            name = self.random.choice(("add", "sub"))
            return f"__builtin_elementwise_{name}_sat({type_}({a}), {type_}({b}))"
        if kind == 9:
            return f"{type_}(high_half({wide}({a}), {wide}({b})))"
        return f"{type_}({wide}({a}) {self.random.choice('+-*&|^')} {wide}({b}))"

    def floating(self, type_: str, depth: int) -> str:
        a, b = self.expression(type_, depth - 1), self.expression(type_, depth - 1)
        kind = self.random.randrange(10)
        if kind == 0:
            return f"({self.condition(depth - 1)} ? {a} : {b})"
        if kind == 1:
            return f"{self.random.choice(('least', 'most'))}<{type_}>({a}, {b})"
        if kind == 2:
            return f"-({a})"
        if type_ == "half":  # its quotients and roots are made of floats', and may be rounded twice
            return f"fine(half({a} {self.random.choice('+-*')} {b}))"
        if kind == 3:
            return f"root({a})"
        if kind == 4:
            return f"fused({a}, {b}, {self.expression(type_, depth - 1)})"
        if kind == 5:
            name = self.random.choice(("floor", "ceil", "trunc", "rint", "fabs"))
            return f"__builtin_{name}{'f' if type_ == 'float' else ''}({a})"
        return f"fine({a} {self.random.choice('++--**/')} {b})"

    def condition(self, depth: int) -> str:
        type_ = self.random.choice(_DRAWN_TYPES)
        a, b = self.expression(type_, depth), self.expression(type_, depth)
        compared = f"({a} {self.random.choice(('<', '<=', '>', '>=', '==', '!='))} {b})"
        if (
            type_ in INTEGERS and self.random.random() < 0.7
        ):  # most comparisons are true, or false, for all lanes
            compared = f"(({a} & {self.random.choice((1, 2, 4))}) != 0)"
        if depth and self.random.random() < 0.2:
            return f"({compared} {self.random.choice(('&&', '||'))} {self.condition(depth - 1)})"
        return compared

    def hash_scope(self) -> None:
        for variable, _ in self.scopes[-1]:
            self.write(f"hash = mixed(hash, bits({variable}));")

    def index(self, size: int) -> str:
        return f"(u32({self.expression('u32', 1)}) & {size - 1})"

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def write(self, line: str) -> None:
        self.lines.append(line)
