"""What comparing two outputs can say, and the tolerance that it uses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs

from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Files are compared in blocks of this many bytes, a multiple of every number's size.
BLOCK_BYTES = 1 << 22


@frozen
class Comparison:
    """``equal`` is ``None`` where the two can't be compared. ``spread``: they differ within the tolerance."""

    equal: bool | None
    detail: str
    spread: bool = False


@frozen
class Tolerance:
    """Numbers may differ by ``absolute + relative * |baseline|``."""

    relative: float
    absolute: float

    @property
    def exact(self) -> bool:
        return self.relative == 0 and self.absolute == 0

    def allows(self, baseline: float, difference: float) -> bool:
        return difference <= self.absolute + self.relative * abs(baseline)

    def __str__(self) -> str:
        return f"{self.absolute:g} + {self.relative:g} |baseline|"


@attrs.define
class Numbers:
    """What was seen of two sequences of numbers: how many differ, and the largest difference."""

    tolerance: Tolerance
    count: int = 0
    departed: int = 0
    _worst: dict[bool, tuple[float, str]] = attrs.field(factory=dict, init=False)  # by "allowed"

    def note(self, difference: float, place: str, *, allowed: bool, departed: int = 1) -> None:
        """The worst of ``departed`` numbers outside the tolerance, or a difference inside of it."""
        difference = math.inf if math.isnan(difference) else difference
        self.departed += 0 if allowed else departed
        if allowed not in self._worst or difference > self._worst[allowed][0]:
            self._worst[allowed] = (difference, place)

    def comparison(self) -> Comparison:
        if not self._worst:
            return Comparison(True, f"{counted(self.count, 'number')} equal")
        difference, place = self._worst[self.departed == 0]
        what = f"largest difference {difference:.6g}, {place}"
        if self.departed:
            share = f"{self.departed} of {self.count} numbers differ by more than {self.tolerance}"
            return Comparison(False, f"{share}; {what}")
        return Comparison(
            True, f"{counted(self.count, 'number')} within {self.tolerance}; {what}", spread=True
        )


def blocks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            yield block
