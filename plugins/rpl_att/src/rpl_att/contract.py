"""The ``att`` block of ``profile.json``: one traced dispatch, instruction by instruction.

Cycles are shader clocks, summed over the traced waves. ``latency`` contains ``stall``; the time of all waves
is ``latency + idle``, and every fraction is taken of it. What the input did not allow is null, and
``unavailable`` says why, by the name of the field.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rpl_core.contracts.common import MetricDoc, OriginName, Part

AttFraction = Annotated[float, Field(ge=0)]


class AttCycles(Part):
    """Sums over instructions; ``total`` = latency + idle. ``lifetime`` is the sum of end - begin of waves."""

    latency: int
    stall: int | None = None
    idle: int | None = None
    total: int | None = None
    lifetime: int | None = None


class AttClassCycles(Part):
    """One class of instructions: executions (``hits``) and their cycles."""

    hits: int
    share: AttFraction | None = None  # of all hits
    latency: int
    stall: int | None = None
    idle: int | None = None


class AttStallSplit(Part):
    """Where wave time went that issued nothing, as fractions of the total.

    ``memory_wait`` is by wait counter (``vmcnt``; ``vmcnt+lgkmcnt`` where one instruction names both),
    ``pipe_backpressure`` by class of instruction. ``startup`` is the part of idle before the first
    instruction of a wave.
    """

    memory_wait_fraction: AttFraction | None = None
    memory_wait: dict[str, AttFraction] = Field(default_factory=dict)
    other_wait_fraction: AttFraction | None = None  # waits for no memory: ALU results, events
    barrier_fraction: AttFraction | None = None
    internal_fraction: AttFraction | None = None  # nop, sleep, priority, end of program
    pipe_backpressure_fraction: AttFraction | None = None
    pipe_backpressure: dict[str, AttFraction] = Field(default_factory=dict)
    startup_fraction: AttFraction | None = None


class AttWaveStates(Part):
    """Cycles of all waves by state, as the decoder assigns them."""

    idle: int
    exec: int
    wait: int
    stall: int


class AttIpc(Part):
    """Instructions per cycle: of a wave's life, of a SIMD's window, and of a CU (sum of its SIMDs)."""

    per_wave: float | None = None
    per_simd: float | None = None
    per_cu: float | None = None


class AttLatency(Part):
    """Cycles from issue to return of operations that a wait really waited for."""

    mean: float
    median: float
    max: int
    samples: int


class AttProducer(Part):
    """A memory operation that a wait waited for, how often, and how often it was the last to return."""

    line: int
    isa: str
    source: str | None = None
    times: int
    deciding_cycles: int  # cycles of waits in which it was the youngest operation


class AttWait(Part):
    """One wait instruction with the operations that it waited for, most cycles first."""

    line: int
    isa: str
    source: str | None = None
    counter: str
    hits: int
    latency: int
    share: AttFraction | None = None
    producers: tuple[AttProducer, ...] = ()


class AttInstruction(Part):
    """One static instruction. ``share`` is (latency + idle) / total."""

    line: int
    code_object: int
    vaddr: int
    isa: str
    source: str | None = None
    kind: str
    hits: int
    latency: int
    stall: int | None = None
    idle: int | None = None
    share: AttFraction | None = None


class AttSourceLine(Part):
    """One line of source, by the innermost frame of the inline chain. ``callers`` are the other frames.

    ``text`` is the line itself where a copy of its file was kept beside the trace.
    """

    source: str
    text: str | None = None
    instructions: int
    hits: int
    latency: int
    stall: int | None = None
    idle: int | None = None
    share: AttFraction | None = None
    callers: tuple[str, ...] = ()


class AttLoop(Part):
    """The rows between the target of a backward branch and the last branch to it, nested loops included."""

    first_line: int
    last_line: int
    source: str | None = None
    depth: int
    entries: int | None = None
    iterations: int
    latency: int
    stall: int | None = None
    idle: int | None = None
    share: AttFraction | None = None
    kinds: dict[str, int] = Field(default_factory=dict)  # hits by class


class AttBranch(Part):
    """A hint, no measurement of lanes: how a branch went, over waves. A trace has no execution mask."""

    line: int
    isa: str
    source: str | None = None
    taken: int
    not_taken: int
    taken_fraction: AttFraction
    fewest_per_wave: int
    most_per_wave: int
    hint: str


class AttOccupancy(Part):
    """Waves of a shader engine, of one of its CUs, or of one SIMD of a CU, over its active time."""

    shader_engine: int
    cu: int | None = None
    simd: int | None = None
    mean_waves: float
    peak_waves: int
    first_clock: int
    last_clock: int


class AttTimeline(Part):
    """A step function: ``values[i]`` holds from ``clocks[i]`` on. Thinned out for display."""

    name: str
    clocks: tuple[int, ...]
    values: tuple[int, ...]


class AttCheck(Part):
    """A relation that holds for every sound trace; ``holds`` is null when it can't be tested here."""

    name: str
    holds: bool | None
    detail: str


class AttPart(Part):
    """One traced dispatch of a kernel; further traced dispatches of it are in ``other_dispatches``."""

    status: Literal["available", "partial", "empty", "unreadable"]
    reason: str | None = None
    origin: OriginName = "measured"
    level: Literal["waves", "code", "stats", "raw", "none"]
    layout: str | None = None
    folder: str
    kernel: str | None = None
    symbol: str | None = None
    agent_handle: int | None = None
    dispatch_id: int | None = None
    joined_by: str | None = None  # what ties the trace to its kernel
    architecture: str | None = None  # the family that the trace's own files name, such as "gfx9"
    shader_engines: tuple[int, ...] = ()
    compute_units: tuple[str, ...] = ()  # "SE0 CU1": where instructions were traced
    waves: int = 0
    waves_missing: int = 0
    instructions: int | None = None
    unresolved_instructions: int | None = None
    cycles: AttCycles | None = None
    issue_fraction: AttFraction | None = None
    stall_fraction: AttFraction | None = None
    idle_fraction: AttFraction | None = None
    stall_split: AttStallSplit | None = None
    instruction_mix: dict[str, AttClassCycles] = Field(default_factory=dict)
    wave_states: AttWaveStates | None = None
    ipc: AttIpc | None = None
    waves_per_simd: float | None = None
    #: By class, and ``any``: one class or more, without waits, barriers and what the sequencer does itself.
    issue_utilization: dict[str, AttFraction] = Field(default_factory=dict)
    occupancy: tuple[AttOccupancy, ...] = ()
    avg_memory_latency: float | None = None  # cycles, mean over samples of vector memory loads
    memory_latency: dict[str, AttLatency] = Field(default_factory=dict)
    waits: tuple[AttWait, ...] = ()
    loops: tuple[AttLoop, ...] = ()
    hot_instructions: tuple[AttInstruction, ...] = ()
    hot_lines: tuple[AttSourceLine, ...] = ()
    mfma_utilization: MetricDoc | None = None
    valu_utilization: MetricDoc | None = None
    counters: dict[str, int] = Field(default_factory=dict)
    branch_hints: tuple[AttBranch, ...] = ()
    checks: tuple[AttCheck, ...] = ()
    shader_clock_mhz: float | None = None
    headroom_fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    headroom_source: str | None = None
    timelines: tuple[AttTimeline, ...] = ()
    unavailable: dict[str, str] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    other_dispatches: tuple[AttPart, ...] = ()
