"""What a transformation declares that its edit changes, besides which everything must mean the same.

An edit that declares nothing may rewrite the body of its kernel, as a language model does, but not its head.
One that declares something may change nothing else: the judge (``rpl_optimize.source_meaning``) compares the
rest of the function node by node, as the user's compiler understands it.
"""

from __future__ import annotations

from typing import Final

from rpl_core.values import frozen

__all__ = [
    "TUNED_CONSTANTS",
    "DeclaredChange",
    "LaunchBounds",
    "LoopHints",
    "ResizedArray",
    "RestrictedParameter",
    "SeveralBlocks",
    "ShuffledReduction",
    "StreamedStores",
    "TunedConstants",
]


class DeclaredChange:
    """One of the changes below; the judge knows no others."""

    __slots__ = ()


@frozen
class LoopHints(DeclaredChange):
    """``count`` loops of one function get a hint (``#pragma unroll``, ``_Pragma``); 0: hints change only."""

    count: int = 1


@frozen
class LaunchBounds(DeclaredChange):
    """Launch bounds become ``threads``, and ``blocks`` (HIP: waves per SIMD) where that is given."""

    threads: int
    blocks: int | None = None


@frozen
class RestrictedParameter(DeclaredChange):
    """The pointer parameter ``name`` gets ``__restrict__``."""

    name: str


@frozen
class StreamedStores(DeclaredChange):
    """``count`` assignments to elements become ``__builtin_nontemporal_store`` of the same value."""

    count: int


@frozen
class ShuffledReduction(DeclaredChange):
    """The last steps of the reduction whose ``for`` begins at byte ``begin`` go from lane to lane.

    The judge proves the loop itself and knows the only text that may take its place
    (``SourceReading.tree_reductions``). On the ways through the machine code fewer barriers may stand then,
    by those of the steps, if values are handed from lane to lane in their place.
    """

    begin: int


@frozen
class SeveralBlocks(DeclaredChange):
    """The first blocks of the grid do the work of ``count`` each, in turn; the rest ends at once.

    The judge proves what it takes (``SourceReading.block_work``) and knows the only text that does it. In the
    machine code all may come behind each other then, and a path without work passes no barrier.
    """

    count: int


@frozen
class ResizedArray(DeclaredChange):
    """The array variable ``name``, declared in the body, gets larger extents.

    The judge proves that nothing depends on where its rows lie (``SourceReading.used_by_element``); ``block``
    says how many work-items every launch has at most in x, y and z, where that is known.
    """

    name: str
    block: tuple[int, ...] | None = None


#: The guard on such an edit, and what patience counts them under.
TUNED_CONSTANTS: Final = "tuned-constants"


@frozen
class TunedConstants(DeclaredChange):
    """Constants of ``SourceReading.constants`` get other values, by name; nothing else changes.

    They stand outside of any function, or in one of the host, and launches follow them. So the judge looks at
    the whole unit: it needs nobody's promise, and whoever proposes may declare it, without an owner.
    """

    values: tuple[tuple[str, int], ...]
