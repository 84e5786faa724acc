"""Replayers execute one captured kernel dispatch again, outside its application."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import attrs

from rpl_core.model.origin import Origin


@attrs.frozen
class ReplayRequest:
    """``recopy`` restores device memory before every iteration; ``code_object`` overrides the captured."""

    capture: Path
    iterations: int = 1
    recopy: bool = True
    code_object: Path | None = None


@attrs.frozen
class ReplayReport:
    """GPU time per iteration in ns, in order, with its origin; ``wall_s`` covers the whole replay."""

    iteration_ns: tuple[int, ...]
    wall_s: float
    origin: Origin


class Replayer(ABC):
    """A way to replay captures."""

    name: str
    summary: str

    @abstractmethod
    def missing(self) -> str | None:
        """Why this replayer can't work here, or ``None``."""

    @abstractmethod
    def replay(self, request: ReplayRequest) -> ReplayReport:
        """Replay a capture. Raises ``RplError`` children naming the failed step."""
