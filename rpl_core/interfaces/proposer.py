"""Proposers choose what the optimizer tries next: by rules, or by asking a language model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import attrs

from rpl_core.interfaces.transformation import EditCandidate, KernelSource


@attrs.frozen
class Attempt:
    """An earlier proposal and why it was not kept."""

    summary: str
    verdict: str
    reason: str


@attrs.frozen
class ProposalRequest:
    """``documents`` maps document names ("profile", "roofline", "dag", "analysis") to plain JSON values."""

    source: KernelSource
    documents: Mapping[str, Any]
    attempts: tuple[Attempt, ...] = ()


class Proposer(ABC):
    """Orders or invents candidates for one kernel."""

    name: str
    summary: str

    @abstractmethod
    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        """The next candidate, or ``None`` when there is nothing left to try."""
