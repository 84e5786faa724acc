"""``ranks.json``: what `rpl ranks` says of a job from the summaries of its ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from attrs import field

from rpl_analysis.contracts import INSIDE, SchemaVersion, document_of, record
from rpl_analysis.contracts.profile import ImbalancedKernelPart


@record
class MissingRankPart:
    """A rank that the answer lacks. ``recording`` is the file, or the number that no file has."""

    recording: str
    reason: str


@record
class ClockPart:
    """``width_ns``: the offset of a machine's clock is known to so much, for the least known one.

    Null with ``reason`` where nothing bounds some clock; 0 on one machine. ``assumed``: it rests on
    collectives of which the name does not tell that no rank leaves before the last one came.
    """

    machines: int
    width_ns: int | None
    reason: str | None
    assumed: bool


@record
class SharesPart:
    """Parts of ranks times job time, 0 to 1, which add up to 1 (``waiting`` null counts in communication).

    ``computing``: kernels other than collectives run. ``communication``: nothing but collectives runs, and
    the last rank has come. ``waiting``: nothing but collectives runs, and it has not. ``copies``: copies run
    alone. ``host``: nothing runs on the GPU.
    """

    computing: float
    communication: float
    waiting: float | None
    copies: float
    host: float


@record
class JobRankPart:
    """One rank; ``rank`` counts by machine, GPU and process. Times as in ``SharesPart``, in nanoseconds.

    ``wait_ns`` is that with every clock where the ends of collectives put it, ``wait_least_ns`` and
    ``wait_most_ns`` hold for any. ``last`` counts the operations to which it came last for sure, of which
    ``last_by_kernel`` because its kernels took longer than the median rank's, ``last_by_host`` because its
    GPU had nothing to do for longer; ``last_or_clock`` those to which it came last or a clock is off. Of the
    operations that the clocks leave open, ``open_longest`` are those before which its kernels and copies took
    longer than any other rank's: durations need no common clock.
    """

    rank: int
    recording: str
    number: int  # in the names of the recordings, else ``rank``
    group: str | None
    node: str
    process: int
    agent: int | None
    launches: int
    kernel_ns: int
    makespan_ns: int
    critical_path_ns: int
    computing_ns: int
    communication_ns: int
    copies_ns: int
    host_ns: int
    wait_ns: int | None
    wait_least_ns: int | None
    wait_most_ns: int | None
    last: int | None
    last_by_kernel: int | None
    last_by_host: int | None
    last_or_clock: int | None
    late_ns: int | None  # sum over ``last``: for so long the others waited for this rank alone
    open_longest: int | None
    open_excess_ns: int | None  # sum over ``open_longest``: by so much it took longer than the next one


@record
class JobCollectivePart:
    """``wait_ns`` of all ranks together, a part of ``total_ns``; null with ``wait_reason``.

    ``matched_by``: which launches are one operation: the n-th of each rank in a ``communicator`` and of a
    size where these are recorded, else the n-th of the kernel. ``exactness`` is that of the waits.
    """

    name: str
    operation: str
    rule: str
    ranks: int
    operations: int | None  # per rank; null where ranks differ
    calls: int
    total_ns: int
    wait_ns: int | None
    wait_least_ns: int | None
    wait_most_ns: int | None
    matched_by: Literal["communicator", "launch_order"]
    communicator: str | None
    elements: int | None
    exactness: Literal["lower_bound", "estimate"] | None
    wait_reason: str | None


@record
class JobKernelPart:
    """Over all launches of all ranks. ``exact``: else the quantiles are within ``relative_error``."""

    name: str
    calls: int
    total_ns: int
    median_ns: int
    p95_ns: int
    exact: bool


@record
class OutlierPart:
    """A rank or group far from the others. ``score`` is the modified z-score, 0.6745 (x - median) / MAD."""

    what: Literal["computing", "host", "waiting"]
    of: Literal["rank", "group"]
    name: str
    rank: int | None
    value_ns: int
    median_ns: int
    score: float | None  # null: all others agree to the nanosecond
    kernel: str | None  # computing: the one whose time is furthest above the median rank's
    kernel_excess_ns: int | None


@record
class GroupPart:
    """Medians over the ranks of a group."""

    name: str
    ranks: int
    computing_ns: int
    host_ns: int
    wait_ns: int | None
    last: int | None  # of its ranks together


@record
class RankWhatIfPart:
    """Modelled: from one collective to the next each rank takes what it took, ``changed`` ones the median."""

    what: str
    changed: int
    gain_ns: int
    job_ns: int
    speedup: float | None


@record
class PhaseSumPart:
    name: str
    ranks: int
    host_ns: int  # of all ranks
    kernel_ns: int
    slowest_rank: int
    slowest_host_ns: int


@record
class PicturePart:
    """Ranks over time: ``rows`` of columns of ``column_ns`` from the job's begin, both parts 0 to 255.

    A row stands for ``ranks_per_row`` ranks. ``computing`` and ``communicating`` are a byte for each.
    """

    column_ns: int
    columns: int
    rows: int
    ranks_per_row: int
    computing: bytes
    communicating: bytes


@record
class RankJob:
    """The answer. ``job_ns`` from the first begin to the last end; with several clocks known to the width."""

    origin: Literal["measured", "modelled", "synthetic"]
    ranks: int
    missing: tuple[MissingRankPart, ...]
    job_ns: int | None
    job_reason: str | None
    critical_path_ns: int  # the longest of any rank
    clock: ClockPart
    shares: SharesPart | None
    relative_error: float
    collectives: tuple[JobCollectivePart, ...]
    kernels: tuple[JobKernelPart, ...]
    imbalances: tuple[ImbalancedKernelPart, ...]
    outliers: tuple[OutlierPart, ...]
    outliers_left_out: int
    groups: tuple[GroupPart, ...]
    what_if: tuple[RankWhatIfPart, ...]
    what_if_reason: str | None
    phases: tuple[PhaseSumPart, ...]
    by_rank: tuple[JobRankPart, ...]
    picture: PicturePart | None = field(metadata=INSIDE)  # for the page


@record
class RanksAnswer:
    """What `rpl ranks` prints with ``--json``, and writes with ``-o``."""

    schema_version: SchemaVersion
    job: RankJob


if TYPE_CHECKING:
    from rpl_core.contracts.common import Part

    class RanksDocument(RanksAnswer, Part):
        """``ranks.json`` as it is read back."""


def __getattr__(name: str) -> Any:
    if name == "RanksDocument":
        return document_of(RanksAnswer, name, in_envelope=False)
    raise AttributeError(name)
