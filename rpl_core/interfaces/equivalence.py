"""Equivalence checks decide whether a changed program still computes the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from pathlib import Path

import attrs


class EquivalenceVerdict(str, Enum):
    EQUAL = "equal"
    DIFFERENT = "different"
    BLIND = "blind"  # the check would also have passed a broken kernel
    NOT_RUN = "not_run"


@attrs.frozen
class EquivalenceRequest:
    """Two builds of one program in separate scratch directories, with the user's own command line."""

    baseline_directory: Path
    candidate_directory: Path
    command: tuple[str, ...]


@attrs.frozen
class EquivalenceReport:
    verdict: EquivalenceVerdict
    evidence: str


class EquivalenceCheck(ABC):
    """Compares the observable results of two builds."""

    name: str
    summary: str

    @abstractmethod
    def check(self, request: EquivalenceRequest) -> EquivalenceReport:
        """Run both builds as needed and compare. ``NOT_RUN`` when it has nothing to compare with."""
