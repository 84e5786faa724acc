"""Code of kernels as the analysis gets it, and what it concludes per recorded kernel."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from rpl_core.analysis.instruction_mix.packed import PackedMix

__all__ = ["KernelCode", "KernelMix", "NoMix"]


@attrs.frozen
class KernelCode:
    """One kernel of a code object that was at hand. ``source`` names the file, never its folder.

    ``calls_functions``: arithmetic may stand in functions that were not inlined, out of sight here.
    """

    symbol: str
    demangled: str
    architecture: str
    source: str
    packed: Mapping[str, PackedMix]
    calls_functions: bool = False


@attrs.frozen
class KernelMix:
    """The packed share by data type of a recorded kernel, and the file it was read from."""

    packed: Mapping[str, PackedMix]
    source: str


@attrs.frozen
class NoMix:
    """Code objects were at hand, but tell nothing about this kernel, for ``reason``."""

    reason: str
