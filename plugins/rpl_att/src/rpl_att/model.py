"""A read thread trace: everything that the files of one decoded folder say, reduced and not interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from rpl_core.model.origin import Origin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_att.join_dispatch import TracedKernel
    from rpl_att.reading.code_table import CodeTable
    from rpl_att.reading.occupancy_events import OccupancyEvents, StateSteps
    from rpl_att.reduction.waves import ReducedWaves


class Level(str, Enum):
    """The best input that was there; each gives less than the one before it."""

    WAVES = "waves"
    CODE = "code"
    STATS = "stats"
    RAW = "raw"
    NONE = "none"


@frozen(eq=False)
class ThreadTrace:
    """One decoded folder.

    ``code`` is ``None`` for an empty trace. ``problems`` are parts that could not be read, each in one
    line; ``raw_files`` counts the ``.att`` files of the dispatch. ``kernel`` is what the profiler's
    own results, or failing them the label in the code, say about the dispatch. ``architecture`` is the GPU
    that the profiler's table of agents names, or the family ("gfx9") of the decoder's tables.
    """

    folder: str
    agent_handle: int | None
    dispatch_id: int | None
    level: Level
    gfx_major: int | None
    code: CodeTable | None
    waves: ReducedWaves | None
    occupancy: OccupancyEvents | None
    counters: dict[str, int]
    shader_clock_mhz: float | None
    states: tuple[StateSteps, ...]
    raw_files: int
    kernel: TracedKernel
    problems: tuple[str, ...] = ()
    pc_sampling_only: bool = False
    origin: Origin = Origin.MEASURED
    architecture: str | None = None
    source_texts: Mapping[str, str] = attrs.field(factory=dict)  # "path:line" -> the line, of kept copies
