"""Next steps as values."""

from __future__ import annotations

from collections.abc import Mapping

from rpl_core.values import frozen

__all__ = ["Confirmation", "NextStep", "NextSteps", "Priority"]


@frozen
class Confirmation:
    """A quantity that tells whether a step is right, as far as it is known, and the counters that give it."""

    quantity: str
    value: float | None
    unit: str | None
    exactness: str | None
    counters: tuple[str, ...]


@frozen
class NextStep:
    advice: str
    text: str
    confirm: tuple[Confirmation, ...]
    command: str | None
    source: str


@frozen
class Priority:
    """What to look at first. ``gain_ns`` is what the run saves if ``subject`` takes half its time."""

    subject: str
    kind: str  # "kernel" or "application"
    label: str | None
    gain_ns: int
    share: float | None  # of the makespan
    steps: tuple[NextStep, ...]


@frozen
class NextSteps:
    """``remedies`` are the commands that record what rules could not be tested without, by kernel."""

    priorities: tuple[Priority, ...]
    kernels: Mapping[str, tuple[NextStep, ...]]
    remedies: Mapping[str, str]
