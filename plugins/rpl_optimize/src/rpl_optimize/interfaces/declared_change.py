"""What a transformation declares that its edit changes, besides which everything must mean the same.

An edit that declares nothing may rewrite the body of its kernel, as a language model does, but not its head.
One that declares something may change nothing else: the judge (``rpl_optimize.source_meaning``) compares the
rest of the function node by node, as the user's compiler understands it.
"""

from __future__ import annotations

from rpl_core.values import frozen

__all__ = ["DeclaredChange", "LaunchBounds", "LoopHints", "ResizedArray", "RestrictedParameter"]


@frozen
class LoopHints:
    """``count`` loops of one function get a hint (``#pragma unroll``, ``_Pragma``)."""

    count: int = 1


@frozen
class LaunchBounds:
    """The kernel's launch bounds become ``threads``, and ``blocks`` where that is given."""

    threads: int
    blocks: int | None = None


@frozen
class RestrictedParameter:
    """The pointer parameter ``name`` gets ``__restrict__``."""

    name: str


@frozen
class ResizedArray:
    """The array variable ``name``, declared in the body, gets other extents."""

    name: str


DeclaredChange = LoopHints | LaunchBounds | RestrictedParameter | ResizedArray
