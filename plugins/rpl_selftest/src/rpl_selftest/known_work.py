"""What the kernels of the self-test do in one launch, by arithmetic: no compiler, no GPU.

Those of ``programs/known_work.hip`` are what it times; those of ``programs/testbed`` (examples/testbed of the
checkout, shipped with this package) are counted as well. Of the testbed only programs stand here whose counts
depend on no data, so that the emulator counts the same for buffers of zeros.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_selftest.bench import Sizes

_WAVE = 64
_COPIED_BYTES, _COPY_BLOCK = 16, 256
_CHAINS, _CHAIN_BLOCK = 256, 64
_LEAVES, _TREE_BLOCK = 256 * 64, 256


@frozen
class KnownKernel:
    """``grid`` is work-items in all, ``fmas_per_lane`` are of double precision; ``arguments`` as
    ``rpl emu launch --arg`` takes them."""

    name: str
    grid: tuple[int, ...]
    workgroup: tuple[int, ...]
    arguments: tuple[str, ...]
    fmas_per_lane: int = 0
    bytes_moved: int | None = None  # read and written beyond the caches, where arithmetic tells it

    @property
    def waves(self) -> int:
        return math.prod(self.grid) // _WAVE  # workgroups are whole waves

    def is_symbol(self, symbol: str) -> bool:
        """Whether ``symbol`` is this kernel's in a code object, C++ or C (Itanium C++ ABI, 5.1.2)."""
        return symbol == self.name or symbol.startswith(f"_Z{len(self.name)}{self.name}")

    @property
    def fma_instructions(self) -> int:
        return self.waves * self.fmas_per_lane


def kernels(sizes: Sizes) -> tuple[KnownKernel, ...]:
    chain = (f"zeros:{_CHAINS * 8}", "f64:0.5", "f64:1")

    def chained(name: str, steps: int) -> KnownKernel:
        return KnownKernel(name, (_CHAINS,), (_CHAIN_BLOCK,), (*chain, f"i32:{steps}"), steps)

    buffer, numbers = f"zeros:{sizes.bytes}", f"zeros:{_LEAVES * 4}"
    copied = (sizes.bytes // _COPIED_BYTES,)
    return (
        KnownKernel("stream_copy", copied, (_COPY_BLOCK,), (buffer, buffer), bytes_moved=2 * sizes.bytes),
        chained("fma_short", sizes.iterations // 2),
        chained("fma_long", sizes.iterations),
        KnownKernel("lds_tree", (_LEAVES,), (_TREE_BLOCK,), (numbers, f"zeros:{_LEAVES // _TREE_BLOCK * 4}")),
    )


def kernels_of_testbed() -> Mapping[str, tuple[KnownKernel, ...]]:
    """Program to its kernels as it launches them without arguments."""
    edge, tile = 96, (16, 16)
    floats, halves = f"zeros:{edge * edge * 4}", f"zeros:{edge * edge * 2}"
    product = (floats, floats, floats, f"i32:{edge}")
    summed = 200_000
    smoothed, cells = 100, 112  # the edge, and in whole tiles
    tiles = (edge // 16 * _WAVE, edge // 16)  # a wave for each
    grid = f"zeros:{smoothed * smoothed * 4}"
    return {
        "gemm": (
            KnownKernel("gemm_naive", (edge, edge), tile, product),
            KnownKernel("gemm_tiled", (edge, edge), tile, product),
        ),
        "reduction": (
            KnownKernel(
                "reduce_lds", (32 * 256,), (256,), (f"zeros:{summed * 4}", "zeros:128", f"i32:{summed}")
            ),
            KnownKernel("reduce_shuffle", (_WAVE,), (_WAVE,), ("zeros:128", "zeros:4", "i32:32")),
        ),
        "mfma_gemm": (KnownKernel("gemm_mfma", tiles, (_WAVE, 1), (halves, halves, floats, f"i32:{edge}")),),
        "stencil": (KnownKernel("stencil", (cells, cells), tile, (grid, grid, f"i32:{smoothed}")),),
    }
