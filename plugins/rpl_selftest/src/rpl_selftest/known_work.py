"""What each kernel of ``programs/known_work.hip`` does in one launch, by arithmetic: no compiler, no GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_selftest.bench import Sizes

_WAVE = 64
_COPIED_BYTES, _COPY_BLOCK = 16, 256
_CHAINS, _CHAIN_BLOCK = 256, 64
_LEAVES, _TREE_BLOCK = 256 * 64, 256


@frozen
class KnownKernel:
    """``fmas_per_lane`` are of double precision; ``arguments`` as ``rpl emu launch --arg`` takes them."""

    name: str
    work_items: int
    workgroup: int
    arguments: tuple[str, ...]
    fmas_per_lane: int = 0
    bytes_moved: int | None = None  # read and written beyond the caches, where arithmetic tells it

    @property
    def waves(self) -> int:
        return self.work_items // _WAVE  # workgroups are whole waves

    @property
    def fma_instructions(self) -> int:
        return self.waves * self.fmas_per_lane


def kernels(sizes: Sizes) -> tuple[KnownKernel, ...]:
    chain = (f"zeros:{_CHAINS * 8}", "f64:0.5", "f64:1")

    def chained(name: str, steps: int) -> KnownKernel:
        return KnownKernel(name, _CHAINS, _CHAIN_BLOCK, (*chain, f"i32:{steps}"), steps)

    buffer = f"zeros:{sizes.bytes}"
    return (
        KnownKernel(
            "stream_copy",
            sizes.bytes // _COPIED_BYTES,
            _COPY_BLOCK,
            (buffer, buffer),
            bytes_moved=2 * sizes.bytes,
        ),
        chained("fma_short", sizes.iterations // 2),
        chained("fma_long", sizes.iterations),
        KnownKernel(
            "lds_tree", _LEAVES, _TREE_BLOCK, (f"zeros:{_LEAVES * 4}", f"zeros:{_LEAVES // _TREE_BLOCK * 4}")
        ),
    )
