"""What a worker is asked to measure and what it answers: plain JSON, because workers are other processes."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from rpl_core.contracts.common import OriginName, Part

TimeSource = Literal["profile", "wall", "printed"]
#: ``lost``: the device went away; everything else is about the configuration.
State = Literal["ok", "build_failed", "failed", "time_limit", "wrong", "no_time", "lost"]


class Timing(Part):
    """How an evaluation is timed; two evaluations can be compared only if this is the same.

    ``profile``: sum over all dispatches; ``wall``: the whole process; ``printed``: what ``pattern`` finds in
    the output, in ``unit_ms`` milliseconds.
    """

    source: TimeSource
    runs: int = Field(ge=1)
    pattern: str | None = None
    unit_ms: float = Field(gt=0, default=1.0)
    device: str | None = None  # device model that the recording must be of
    collector: str | None = None


class Variant(Part):
    """One configuration as commands. ``build`` is empty where nothing is built.

    ``{program}`` in a command stands for the built program.
    """

    index: int
    build: tuple[str, ...] = ()
    build_key: str | None = None
    command: tuple[str, ...]
    validate_command: tuple[str, ...] = ()


class PluginChoice(Part):
    """Which plugins a worker loads: those that the command was started with."""

    modules: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    config_file: str | None = None


class Job(Part):
    """Measure ``variants``: one configuration, or several ``in_turns`` to compare them, ``rounds`` times."""

    number: int
    variants: tuple[Variant, ...]
    timing: Timing
    in_turns: bool = False
    rounds: int = Field(ge=1, default=1)
    device: str | None = None  # where it must run; null: anywhere
    working_directory: str
    scratch: str  # builds and recordings go below
    time_limit_s: float = Field(gt=0)
    build_time_limit_s: float = Field(gt=0)
    plugins: PluginChoice = PluginChoice()
    keep: str | None = None  # a run directory of the first variant stays here


class Reading(Part):
    """What one variant gave. ``times_ms`` has one value per run, or per round."""

    index: int
    state: State
    times_ms: tuple[float, ...] = ()
    origin: OriginName | None = None
    reason: str | None = None
    binary: str | None = None  # digest of the program that ran

    def checked(self) -> Reading:
        """Itself, or a failure where what it calls a time can't be one: no program runs for 0 ms or less."""
        if self.state != "ok" or (self.times_ms and all(0 < time < math.inf for time in self.times_ms)):
            return self
        wrong = next((time for time in self.times_ms if not 0 < time < math.inf), None)
        reason = "it ran, and no time was given" if wrong is None else f"{wrong:g} ms is no time of a run"
        return self.model_copy(update={"state": "no_time", "times_ms": (), "reason": reason})


class Outcome(Part):
    """The answer to one job. ``device`` is where it ran."""

    number: int
    device: str
    readings: tuple[Reading, ...]
    wall_s: float = Field(ge=0, default=0.0)
