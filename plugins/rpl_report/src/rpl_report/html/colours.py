"""Which kernel has which colour: the same one in every picture of the page."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

__all__ = ["COLOURS", "COPY", "OTHER", "Colours", "assign_colours"]

#: Distinct colours in the style sheet (``--c0`` to ``--c7``: Okabe and Ito's set, told apart with every
#: common colour vision deficiency); ``c8`` stands for copies, ``c9`` for all other kernels.
COLOURS = 8
COPY = 8
OTHER = 9


@attrs.frozen
class Colours:
    """Colour numbers by recorded name."""

    by_name: dict[str, int]

    def of(self, name: str, kind: str = "kernel") -> int:
        return COPY if kind == "copy" else self.by_name.get(name, OTHER)


def assign_colours(ranked: Iterable[str]) -> Colours:
    """The first kernels of ``ranked`` get a colour of their own."""
    names = list(dict.fromkeys(ranked))[:COLOURS]
    return Colours({name: number for number, name in enumerate(names)})
