"""What differs between two builds, and how bad each difference is."""

from __future__ import annotations

from enum import Enum

from rpl_core.values import frozen


class Severity(str, Enum):
    """``breaking``: the host's launches no longer fit. ``regression``: they fit and cost more."""

    BREAKING = "breaking"
    REGRESSION = "regression"
    INFORMATION = "information"


@frozen
class Difference:
    """``what`` names the compared property; both values as text, ``None`` where there is none."""

    severity: Severity
    kernel: str | None
    what: str
    before: str | None
    after: str | None
    reason: str


@frozen
class AbiDiff:
    """All differences, breaking ones first. ``compared`` counts the kernels found on both sides."""

    differences: tuple[Difference, ...]
    compared: int
    unknown: tuple[str, ...] = ()  # comparisons that could not be made, with the reason

    @property
    def compatible(self) -> bool:
        """Whether every launch that fits the baseline also fits the candidate."""
        return not self.of(Severity.BREAKING)

    def of(self, severity: Severity) -> tuple[Difference, ...]:
        return tuple(d for d in self.differences if d.severity is severity)
