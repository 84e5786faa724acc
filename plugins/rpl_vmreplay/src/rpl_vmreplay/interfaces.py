"""Replayers run a captured launch again: on a GPU, or on something that stands for one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from pathlib import Path

import attrs

from rpl_core.errors import MissingError
from rpl_core.interfaces.options import Options
from rpl_core.model.metric import Origin
from rpl_core.values import frozen


class ReplayError(str, Enum):
    """Why a replay has no result, as ``error.kind`` tells it (docs/REPLAY.md)."""

    RESERVE_FAILED = "reserve_failed"  # the runtime gave no addresses at all
    MAP_FAILED = "map_failed"  # memory, its mapping or its access rights
    COPY_FAILED = "copy_failed"  # captured bytes did not get there, or not back
    RELOCATED = "relocated"  # the runtime gave other addresses
    LAYOUT_CLASH = "layout_clash"  # the replaying process itself lies there
    GPU_FAULT = "gpu_fault"  # an access or an instruction that the GPU refused
    ISA_MISMATCH = "isa_mismatch"  # code for another GPU, or for other features of it
    NO_VIRTUAL_MEMORY = "no_virtual_memory"  # the runtime can't place memory where it is told to
    NO_RUNTIME = "no_runtime"
    NO_DEVICE = "no_device"
    BAD_CODE = "bad_code"  # the code object can't be loaded, or has no such kernel
    UNSUPPORTED = "unsupported"  # something of the launch that the replayer can't do
    UNDECIDABLE = "undecidable"  # what ran would not have been the code that was given
    TIME_LIMIT = "time_limit"
    INTERNAL = "internal"


class Rounding(str, Enum):
    """Where results of floating-point operations go that are not exact (IEEE 754-2019, 4.3). ``DRAWN``:
    another
    direction every few instructions, the same ones for the same ``variation``."""

    NEAREST = "nearest"
    UP = "up"
    DOWN = "down"
    ZERO = "zero"
    DRAWN = "drawn"


@frozen
class Failure:
    """One line for people, and what kind it is. ``address`` is where a GPU fault happened, if it is known."""

    kind: ReplayError
    fact: str
    cause: str | None = None
    next_step: str | None = None
    address: int | None = None


@frozen
class MemoryRange:
    """``size`` bytes from an address of the captured program."""

    address: int
    size: int


@frozen
class MemoryEdit:
    """Bytes that take the place of captured ones before every launch to which the capture is restored."""

    address: int
    data: bytes


@frozen
class ReplayRequest:
    """One capture to run again.

    ``capture`` is the folder of a whole capture; who asks has checked it (``rpl capture verify``). Without
    ``recopy`` the memory is restored before the first launch only, warm-up or not, so that later ones see
    what earlier ones left. ``code_object`` takes the place of the captured code, with the same kernel name
    and layout of arguments. ``keep`` names the memory to give back as it is after the last launch. With
    ``patch_hidden_args`` pointers among the compiler's own arguments that lead to objects of the captured
    process are zeroed. ``time_limit_s`` is for one launch.
    ``against`` is another code object that takes turns with ``code_object``: ``iterations`` pairs of
    launches, in which it runs first where ``against_first`` says so, each from restored memory. Afterwards
    each runs once more, not timed, and what it leaves is given back. ``keep_variables`` asks for the bytes of
    the module's variables too. ``cold_caches``: what caches hold is made to give way before each launch.
    ``variation`` chooses among what hardware may do as well: another order of the workgroups, other rests in
    registers that nobody wrote. Where nothing can be chosen, each launch is another one anyway.
    ``sanitize`` asks for findings: races, reads of what nobody wrote, barriers that do not fit.
    ``rounding`` other than to the nearest is for replayers that say so (``Replayer.rounds``); with
    ``keep_halves`` results of 16 bits are not rounded otherwise.
    ``options`` are the values of ``rpl replay``'s options, those of plugins too.
    """

    capture: Path
    iterations: int = 1
    warm_ups: int = 0
    recopy: bool = True
    code_object: Path | None = None
    edits: tuple[MemoryEdit, ...] = ()
    keep: tuple[MemoryRange, ...] = ()
    hashes: bool = True
    access_log: bool = False
    patch_hidden_args: bool = False
    time_limit_s: float | None = None
    variation: int = 0
    against: Path | None = None
    against_first: tuple[bool, ...] = ()
    keep_variables: bool = False
    cold_caches: bool = False
    sanitize: bool = False
    rounding: Rounding = Rounding.NEAREST
    keep_halves: bool = False
    options: Options = attrs.field(factory=Options, eq=False)


@frozen
class Finding:
    """Something that a launch did and no right kernel does. ``text`` names the instructions, for people."""

    kind: str
    text: str


@frozen
class RegionHashes:
    """XXH3 (64 bits, seed 0, little-endian) of each MiB of a captured region, the last one may be shorter."""

    base: int
    size: int
    chunks: bytes


@frozen
class AccessLog:
    """What one launch did to memory, byte by byte: no byte is in two ranges of a list, and they are sorted.

    ``read_first`` is what was read before the launch itself wrote it.
    """

    read_first: tuple[MemoryRange, ...]
    written: tuple[MemoryRange, ...]


@frozen
class KeptVariable:
    """A captured variable of the module after the last launch. ``address`` is where that code has it."""

    name: str
    data: bytes
    address: int


@frozen
class AgainstResult:
    """What ``ReplayRequest.against`` did: its time of each pair, and what it left."""

    times_ns: tuple[int, ...] = ()
    kept: tuple[bytes, ...] = ()
    variables: tuple[KeptVariable, ...] = ()


@frozen
class Reservation:
    """Addresses that were asked for and what was given; ``None``: none."""

    requested: int
    size: int
    returned: int | None

    @property
    def exact(self) -> bool:
        return self.returned == self.requested


@frozen
class ReplayEnvironment:
    """On what a replay ran. ``runtime`` is its library or program, ``interface_version`` that of HSA."""

    device: str | None = None
    product: str | None = None
    isa: str | None = None
    runtime: str | None = None
    runtime_version: str | None = None
    interface_version: str | None = None
    pid: int | None = None


@frozen
class ReplayResult:
    """What became of a replay.

    ``times_ns`` and ``warm_up_ns`` are of each launch, empty where nothing can be told of time; ``origin``
    says what they are. ``wall_ns`` is the whole replay with its preparation. ``hashes`` is ``None`` where
    they were not asked for or there was no end state. ``reproduced`` compares the memory with the hashes of
    the capture; ``None`` with ``reproduced_reason`` where that says nothing. ``differing`` are the first
    regions that differ. ``kept`` are the bytes of ``ReplayRequest.keep``, in its order. ``accesses`` is
    ``None``, with ``accesses_reason``, where it was not asked for or can't be known. ``stale_arguments`` are
    hidden arguments that point into the captured process, ``patched_arguments`` those that were zeroed.
    ``variables`` are those that the code has. ``restored_bytes``: before later launches only so many bytes
    were restored, and all others are proven not to have changed. ``flushed_bytes`` were written elsewhere
    before each launch, to empty caches. ``findings`` is ``None`` where they were not
    asked for, or the replayer looks for none. ``rounded``: some result of floating-point arithmetic may not
    have been exact; ``False``: all were; ``None``: nobody knows. With ``failure`` there is no end state.
    """

    replayer: str
    origin: Origin
    times_ns: tuple[int, ...] = ()
    warm_up_ns: tuple[int, ...] = ()
    wall_ns: int | None = None
    reservations: tuple[Reservation, ...] = ()
    hashes: tuple[RegionHashes, ...] | None = None
    reproduced: bool | None = None
    reproduced_reason: str | None = None
    differing: tuple[MemoryRange, ...] = ()
    kept: tuple[bytes, ...] = ()
    accesses: AccessLog | None = None
    accesses_reason: str | None = None
    stale_arguments: tuple[str, ...] = ()
    patched_arguments: tuple[str, ...] = ()
    environment: ReplayEnvironment = ReplayEnvironment()
    variables: tuple[KeptVariable, ...] = ()
    against: AgainstResult | None = None
    restored_bytes: int | None = None
    flushed_bytes: int | None = None
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] | None = None
    rounded: bool | None = None
    failure: Failure | None = None


@frozen
class ReserveRequest:
    """Addresses to try. ``isa`` is that of the launch, for the choice of the GPU; ``None``: any."""

    ranges: tuple[MemoryRange, ...]
    isa: str | None = None
    options: Options = attrs.field(factory=Options, eq=False)


@frozen
class ReserveResult:
    """One answer for each range of the request, in its order; fewer where a failure ended the trial."""

    reservations: tuple[Reservation, ...]
    environment: ReplayEnvironment = ReplayEnvironment()
    failure: Failure | None = None


@frozen
class Fill:
    """``pattern`` over and over, in ``size`` bytes from an address."""

    address: int
    size: int
    pattern: bytes = attrs.field(repr=False)


@frozen
class LaunchInput:
    """One input that takes the place of the captured one: sizes in work-items, the kernel's own
    arguments (the compiler's are filled in for ``grid`` and ``block``), and what is in memory.

    ``sanitize`` looks for races and for how waves work together. ``twice``: the baseline runs under another
    schedule too, and what is not the same then says nothing about other code.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    kernarg: bytes
    fills: tuple[Fill, ...] = ()
    sanitize: bool = False
    twice: bool = False


@frozen
class InputsRequest:
    """Two code objects on many inputs of one launch, each from the captured memory with ``fills`` in it.

    ``beside`` is more memory, zeros unless it is filled, away from what is captured. ``most_instructions`` of
    all waves together may run in one launch of ``baseline``, a twentieth of them where it is watched (it
    runs again without); ``other`` gets ten times what that took.
    """

    capture: Path
    baseline: Path
    other: Path
    inputs: tuple[LaunchInput, ...]
    beside: tuple[MemoryRange, ...] = ()
    most_instructions: int = 1_000_000
    time_limit_s: float | None = None


@frozen
class LaunchEnd:
    """How a launch ended: ``ended``, ``memory_fault``, ``trap`` or ``limit``, and why it did not end well."""

    outcome: str
    reason: str
    findings: tuple[Finding, ...] = ()
    instructions: int = 0


@frozen
class WrittenPair:
    """A range that the baseline wrote, as it left it and as the other code did."""

    address: int
    baseline: bytes = attrs.field(repr=False)
    other: bytes = attrs.field(repr=False)


@frozen
class InputAnswer:
    """What both did with one input. ``other`` is ``None`` where the baseline did not end.
    ``watched``: for races and for how waves work together.

    ``same_results``: the baseline's own, under another schedule. ``written_bytes`` by the baseline;
    ``differing`` is empty where all of them are the same. ``outside`` is what the other wrote beside them,
    and ``variables`` of the module differ. ``cooperation`` says what the other's waves do otherwise together,
    and ``lds_unlike`` that its use of LDS can't be compared with the baseline's.
    """

    baseline: LaunchEnd
    other: LaunchEnd | None = None
    watched: bool = False
    same_results: bool = True
    stable: bool = True
    written_bytes: int = 0
    differing: tuple[WrittenPair, ...] = ()
    outside: MemoryRange | None = None
    variables: tuple[str, ...] = ()
    cooperation: str | None = None
    lds_unlike: bool = False
    barriers: int = 0
    atomics: int = 0


@frozen
class InputsResult:
    """One answer for each input, as far as time allowed. ``unreached`` of ``instructions`` of the other code
    ran with none of them. ``failure``: why there are fewer answers; by another kind than ``TIME_LIMIT`` the
    replayer itself broke."""

    answers: tuple[InputAnswer, ...] = ()
    unreached: int = 0
    instructions: int = 0
    failure: Failure | None = None


class Replayer(ABC):
    """Something that runs captured launches.

    ``devices`` are the names that captures are for, such as the GPU's name in the compiler's spelling, or the
    name under which it is asked for. ``origin`` is what its times are at best. ``logs_accesses``: it can tell
    which bytes a launch reads and writes. ``rounds``: it can round otherwise than to the nearest.
    """

    name: str
    summary: str
    devices: tuple[str, ...]
    origin: Origin
    logs_accesses: bool = False
    rounds: bool = False

    def missing(self) -> str | None:
        """Why it can't work here (for people, with the remedy), or ``None`` if it can.

        Looks at files only: whether there is a GPU shows when something is run.
        """
        return None

    @abstractmethod
    def replay(self, request: ReplayRequest) -> ReplayResult:
        """Run the launch. Expected failures are in the result.

        Raises ``MissingError`` where ``missing`` tells something, ``BadDataError`` for a capture that it
        can't read, ``InterruptedRunError`` and ``TimeLimitError``.
        """

    def compare_inputs(self, request: InputsRequest) -> InputsResult | None:  # noqa: ARG002 - as below
        """Both code objects on each input; ``None``: it can't. Raises as ``replay`` does."""
        return None

    def reserve(self, request: ReserveRequest) -> ReserveResult:  # noqa: ARG002 - for those that override it
        """Only ask for the addresses and give them back. Raises ``MissingError`` where that means nothing."""
        raise MissingError(
            f"the replayer {self.name} takes no addresses from a runtime",
            next_step="ask one that does, such as `--replayer hsa`",
        )
