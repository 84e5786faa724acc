"""Collectors run an application under a profiler and leave files; they never interpret them.

Lifecycle hooks are told about the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from rpl_core.errors import RplError
from rpl_core.interfaces.options import Options
from rpl_core.model.device import DeviceModel
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.trace import TraceRole
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


@frozen
class CollectRequest:
    """What the user asked for. ``counters`` is empty unless counter passes are wanted now.

    ``counters_follow``: they are asked for later, when the device is known. ``options`` are those of the
    command, with the collector's own among them.
    """

    command: tuple[str, ...]
    runs: int
    device: DeviceModel | None = None
    counters: tuple[str, ...] = ()
    trace_dependencies: bool = False  # also copies and the host API: what sync edges need
    reference_run: bool = False  # one more run without them (``TraceRole.REFERENCE``): what they cost
    time_limit_s: float | None = None  # per pass
    allow_dangerous_counters: bool = False
    options: Options = attrs.field(factory=Options, eq=False)
    counters_follow: bool = False


@frozen
class PlannedPass:
    """One execution of the application, described before anything runs (``--dry-run`` prints it).

    ``directory`` is relative to the run directory; ``command`` is complete and goes to no shell, with
    ``{directory}`` standing for the absolute directory of the pass. ``inputs`` are small files, name and
    text, that the collector writes into that directory for it.
    """

    name: str
    role: TraceRole
    directory: str
    command: tuple[str, ...]
    counters: tuple[str, ...] = ()
    time_limit_s: float | None = None
    inputs: tuple[tuple[str, str], ...] = ()


@frozen
class CollectionPlan:
    passes: tuple[PlannedPass, ...]
    diagnostics: tuple[Diagnostic, ...] = ()  # e.g. counters left out and why


@frozen
class PassOutcome:
    """How a pass ended. ``error`` is ``None`` for success; files found are relative to the run directory."""

    planned: PlannedPass
    exit_status: int | None  # of the application; None when it never ran or was killed
    wall_s: float
    files: tuple[str, ...] = ()
    log: str | None = None  # relative path of the profiler's log
    diagnostics: tuple[Diagnostic, ...] = ()
    process_ms: float | None = None  # wall clock of the process, for collectors without a GPU trace
    tool_version: str | None = None


#: Receives one line of progress or log text at a time.
LineSink = Callable[[str], None]


@frozen(eq=False)
class FollowUpRequest:
    """What a collector that adds to a profile may know.

    ``device`` and ``documents`` look at the run so far when they are called; the latter analyses it and gives
    the content of the documents by name.
    """

    command: tuple[str, ...]
    options: Options
    device: Callable[[], DeviceModel | None]
    documents: Callable[[], Mapping[str, Mapping[str, Any]]]


class Collector(ABC):
    """A way to record an application.

    One whose ``role`` is not ``TIMING`` adds passes to a profile that another collector recorded
    (``follow_up``). What goes wrong in them costs these passes only, and becomes a diagnostic with the code
    ``lost_code``.
    """

    name: str
    summary: str
    #: What its passes give: TIMING records applications, others add to a profile.
    role: TraceRole = TraceRole.TIMING
    device: str | None = None  # the only one that it records; it is taken where that is asked for
    deterministic: bool = False  # each run gives the same figures: one timing run stands for all
    lost_code: str = "collect.follow_up_failed"

    @abstractmethod
    def missing(self) -> str | None:
        """Why this collector can't work here (for people, with the remedy), or ``None`` if it can."""

    def instead(self, options: Options) -> str | None:
        """The collector to use instead of this one with these options, by name, or ``None`` for this one."""
        _ = options
        return None

    @abstractmethod
    def plan(self, request: CollectRequest) -> CollectionPlan:
        """Describe the passes for ``request``; runs nothing that touches a GPU.

        Raises ``UsageError`` for what it can't do and ``MissingError`` when the tool is absent.
        """

    @abstractmethod
    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        """Execute one pass in its own directory.

        Raises ``ApplicationError``, ``TimeLimitError``, ``InterruptedRunError``, ``MissingError`` or
        ``BadDataError``; the process group is gone when it returns or raises.
        """

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        """Passes to run after the timing and counter passes, or ``None`` when the options ask for none."""
        _ = request
        return None

    def announcement(self, options: Options) -> str | None:
        """What is said before anything runs, and by ``--dry-run``: passes to come, their risks; or ``None``.

        One that records applications is asked where counters are wanted.
        Raises ``UsageError`` for options that contradict each other.
        """
        _ = options
        return None

    def lost(self, error: RplError) -> Diagnostic:
        """What the profile says when a follow-up pass failed, or could not be planned."""
        return Diagnostic(
            self.lost_code,
            f"{self.name}: {error.fact}; the profile is complete without it",
            cause=error.cause,
            remedy=error.next_step,
        )
