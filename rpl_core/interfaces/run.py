"""What lifecycle hooks are told about a run."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from rpl_core.values import frozen


class RunState(str, Enum):
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"  # interrupted, out of time, or a pass failed; what exists can be analysed


@frozen
class RunInfo:
    """A profile run: where it is kept and what it executes."""

    directory: Path
    command: tuple[str, ...]
    device: str | None
    collector: str


@frozen
class RunOutcome:
    state: RunState
    reason: str | None = None
