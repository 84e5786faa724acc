"""Draws HIP kernels whose counts are one only, however waves take turns.

Their lanes diverge, loop and change words together. What steers a branch is the work-item's own numbers, or a
comparison and exchange that fails for all lanes of the wave but one.
"""

from __future__ import annotations

import random

import attrs

INPUTS, OUTPUTS, SHARED = 2048, 2, 256  # words: read, written by each work-item, changed by all
_LDS, _BINS = 8192, 8
_HEAD = """\
#define __shared__ __attribute__((shared))
typedef unsigned u32;
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256))) void
#define T u32(__builtin_amdgcn_workitem_id_x())
#define G u32(__builtin_amdgcn_workgroup_id_x())
#define FIRST(x) u32(__builtin_amdgcn_readfirstlane(x))
#define FENCE(how) __builtin_amdgcn_fence(how, "workgroup")
#define SYNC() (FENCE(__ATOMIC_RELEASE), __builtin_amdgcn_s_barrier(), FENCE(__ATOMIC_ACQUIRE))
#define CHANGE(how, p, v) __hip_atomic_fetch_##how(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define EXCHANGE(p, old, v) __hip_atomic_compare_exchange_strong( \\
    p, &old, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)
"""


@attrs.frozen
class CountedKernel:
    """A launch has ``groups`` workgroups of ``block`` work-items; ``lds_bytes`` are what it declares."""

    name: str
    text: str
    groups: int
    block: int
    lds_bytes: int


def counted_kernel(seed: int) -> CountedKernel:
    """The same kernel for the same seed, on each machine."""
    return _Drawing(seed).kernel()


def source(kernels: list[CountedKernel]) -> str:
    return _HEAD + "\n".join(kernel.text for kernel in kernels)


class _Drawing:
    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.block = self.random.choice((64, 96, 128, 200, 256))
        self.groups = self.random.randint(1, 3)
        #: Words between the first of a work-item's own two words of LDS and that of the next one.
        self.stride = self.random.choice((2, 3, 4, 8, 12, 16, 31))

    def kernel(self) -> CountedKernel:
        name, bins = f"counted_{self.seed}", 4 * _BINS
        self.write(f"KERNEL {name}(const u32* in, u32* out, u32* shared) {{")
        self.write(f"__shared__ u32 lds[{_LDS}], bins[{bins}];")
        self.write(
            f"u32 i = G * {self.block} + T, x = in[i], y = in[i ^ {self.random.randint(1, 127)}], z = T;"
        )
        self.write(f"u32* own = lds + T * {self.stride}; own[0] = y; own[1] = i;")
        self.write(f"if (T < {bins}) bins[T] = 0;")
        self.write("SYNC();")
        for _ in range(self.random.randint(2, 4)):
            self.random.choice((self.loop, self.branch, self.exchange, self.atomics, self.by_value))(2)
            if self.random.random() < 0.4:
                self.write("SYNC();")
        self.exchange(0)
        self.write("SYNC();")
        self.write(f"if (T < {bins}) CHANGE(add, &shared[128 + T], bins[T]);")
        self.write(f"out[i * {OUTPUTS}] = x; out[i * {OUTPUTS} + 1] = y ^ z;")
        self.write("}")
        return CountedKernel(name, "\n".join(self.lines), self.groups, self.block, 4 * (_LDS + bins))

    def write(self, line: str) -> None:
        self.lines.append(line)

    def number(self, depth: int = 2) -> str:
        leaf = self.random.choice(("x", "y", "z", f"{self.random.getrandbits(self.random.choice((4, 32)))}u"))
        if depth == 0 or self.random.random() < 0.2:
            return leaf
        a, b = self.number(depth - 1), self.number(depth - 1)
        shift = self.random.randint(1, 31)
        forms = [f"{a} {how} {b}" for how in "+-*^&|"]
        forms += [f"{a} << {shift}", f"{a} >> {shift}", f"{a} < {b} ? {b} : {a}", f"{a} >> ({b} & 31)"]
        return f"({self.random.choice(forms)})"

    def condition(self) -> str:
        if self.random.random() < 0.5:
            return f"({self.number(1)} & {1 << self.random.randint(0, 8)}u)"
        return f"({self.number(1)} {self.random.choice(('<', '>', '!=', '=='))} {self.number(1)})"

    def change(self) -> None:
        to = self.random.choice("xyz")
        forms = (
            f"{to} = {self.number()};",
            f"{to} += {self.number()};",
            f"{to} ^= own[0] + 3 * own[1];",
            f"own[{self.random.randint(0, 1)}] = {self.number(1)};",
            f"own[0] = {self.number(1)}; own[1] = {to};",
            f"{to} += in[{self.number(1)} % {INPUTS}u];",
        )
        self.write(self.random.choice(forms))

    def some(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 2)):
            if depth and self.random.random() < 0.5:
                self.random.choice((self.loop, self.branch, self.atomics))(depth - 1)
            else:
                self.change()

    def branch(self, depth: int) -> None:
        self.write(f"if {self.condition()} {{")
        self.some(depth)
        if self.random.random() < 0.5:
            self.write("} else {")
            self.some(depth)
        self.write("}")

    def loop(self, depth: int) -> None:
        """Each lane as often as its own number says, or less; outer loops longer than inner ones."""
        self.names += 1
        k, most = f"k{self.names}", self.random.choice((7, 15) if depth == 2 else (1, 3))
        self.write(f"for (u32 {k} = {self.number(1)} & {most}; {k}; --{k}) {{")
        self.write(f"y = y * 2654435761u + (y >> 3) + {k};")
        self.some(depth)
        if self.random.random() < 0.6:
            self.write(f"if {self.condition()} {self.random.choice(('break', 'continue'))};")
        self.some(0)
        self.write("}")

    def atomics(self, _: int) -> None:
        """Of words that all change in one way, so that their order does not matter, and nobody reads."""
        how, first = self.random.choice((("add", 0), ("max", 64)))
        place = f"&shared[{first} + ({self.number(1)} & {self.random.choice((7, 63))})]"
        self.write(f"CHANGE({how}, {place}, {self.number(1)});")

    def exchange(self, _: int) -> None:
        """Words of the wave alone: of the lanes that want one, one gets through each time round."""
        self.write(f"{{ u32* p = &bins[T / 64 * {_BINS} + ({self.number(1)} & {_BINS - 1})];")
        self.write(f"u32 old = *p, seen, by = {self.number(1)} | 1;")
        self.write("do { seen = old; EXCHANGE(p, old, seen + by); } while (old != seen); }")

    def by_value(self, _: int) -> None:
        """Lanes with the same number together, one number after the other."""
        most = self.random.choice((3, 7))
        self.write(f"for (u32 w = {self.number(1)} & {most};;) if (FIRST(w) == w) {{")
        self.some(0)
        self.write("break; }")
