"""What the analysis concludes from code objects per recorded kernel."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from rpl_codeobject.packed import PackedMix

__all__ = ["KernelMix", "NoMix"]


@attrs.frozen
class KernelMix:
    """The packed share by data type of a recorded kernel, and the file it was read from."""

    packed: Mapping[str, PackedMix]
    source: str


@attrs.frozen
class NoMix:
    """Code objects were at hand, but tell nothing about this kernel, for ``reason``."""

    reason: str
