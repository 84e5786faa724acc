"""``compare.json`` (two recordings, or interleaved pairs) and ``history.json`` (steps over many runs).

Times are in ns, ratios are NEW / BASE, changes are fractions (0.03 is 3 % slower).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rpl_core.contracts.common import Document, OriginName, Part, ProvenanceDoc

VerdictName = Literal["regressed", "improved", "unchanged", "inconclusive"]
OutcomeName = Literal["pass", "regression", "inconclusive", "no_verdict"]
ItemKind = Literal["kernel", "runtime", "makespan", "critical_path", "process_time"]
StatisticName = Literal["sum", "median"]
Fraction = Annotated[float, Field(ge=0, le=1)]


class DriftPart(Part):
    """Spearman's rank correlation of the times with their order; ``change`` is late over early half, - 1."""

    rho: float
    p: Fraction
    change: float
    flagged: bool


class SamplePart(Part):
    """One statistic per run of one side. ``cv`` is 1.4826 MAD / median, null for one run."""

    runs: int
    values_ns: tuple[float, ...]
    median_ns: float | None
    cv: float | None
    launches: float | None = None  # mean per run
    share: float | None = None  # of the side's kernel time
    drift: DriftPart | None = None


class ItemPart(Part):
    """One kernel, or one time of the whole application, on both sides.

    ``ratio`` is the Hodges-Lehmann estimate, ``ratio_low`` .. ``ratio_high`` its exact rank interval at
    ``confidence``; ``p`` is two-sided, ``p_adjusted`` corrected over the items of its family.
    """

    name: str
    kind: ItemKind
    gated: bool
    verdict: VerdictName
    reason: str
    excludes_regression: bool  # the interval lies below the upper limit: the gate may pass
    base: SamplePart
    new: SamplePart
    ratio: float | None = None
    change: float | None = None  # ratio - 1
    ratio_low: float | None = None
    ratio_high: float | None = None
    confidence: Fraction
    p: Fraction | None = None
    p_adjusted: Fraction | None = None
    noise: float | None = None  # robust CV of one run; for pairs without the drift that both runs share
    minimum_detectable_change: float | None = None
    runs_needed: int | None = None  # per side, for a verdict at this noise; null if unknown or above 1000


class OneSidedKernel(Part):
    """A kernel that only one side ran. It is not gated itself; the application's times hold its effect."""

    name: str
    runs: int  # runs in which it was launched
    median_ns: float
    launches: float
    share: float | None


class SidePart(Part):
    """What was compared. ``command`` is empty where the recording does not say."""

    label: Literal["base", "new"]
    runs: int
    processes: int  # most in one run
    origin: OriginName
    device: str | None
    range: str | None = None  # --range: only what these ranges launched was compared; null: all work
    command: tuple[str, ...] = ()
    collector: str | None = None
    collector_version: str | None = None
    formats: tuple[str, ...] = ()
    provenance: ProvenanceDoc


class GatePart(Part):
    """The answer. ``worst_change`` is the largest slow-down (or least speed-up) among gated items."""

    outcome: OutcomeName
    reasons: tuple[str, ...]
    fail_above: float
    gated_items: int
    worst_item: str | None = None
    worst_change: float | None = None


class MethodPart(Part):
    """How verdicts were reached."""

    mode: Literal["unpaired", "interleaved"]
    statistic: StatisticName
    test: str
    alpha: float
    looks: tuple[int, ...] = ()  # interleaved only: alpha is shared over them
    pairs: int | None = None
    correction: Literal["holm"] = "holm"
    min_share: float
    forced: bool = False


class CompareDocument(Document):
    """BASE against NEW, per kernel and for the whole application."""

    method: MethodPart
    gate: GatePart
    base: SidePart
    new: SidePart
    application: tuple[ItemPart, ...] = ()
    kernels: tuple[ItemPart, ...] = ()
    only_base: tuple[OneSidedKernel, ...] = ()
    only_new: tuple[OneSidedKernel, ...] = ()


class HistoryEntry(Part):
    """One run directory or recording of a history, in time order."""

    name: str
    created_utc: str | None
    runs: int
    origin: OriginName


class StepPart(Part):
    """A step of a level: the first entry at the new level, and how many entries confirm it."""

    entry: str
    previous_entry: str
    before_ns: float
    after_ns: float
    change: float
    entries_before: int
    entries_after: int
    confirmed: bool  # more than one entry at the new level


class HistoryItem(Part):
    """One kernel or application time over the history; entries without it are left out."""

    name: str
    kind: ItemKind
    verdict: VerdictName
    reason: str
    entries: int
    first_ns: float
    last_ns: float
    values_ns: tuple[float | None, ...] = ()  # one per entry of the history; null: the entry lacks the item
    steps: tuple[StepPart, ...] = ()


class HistoryDocument(Document):
    """Where kernels and the application became slower or faster, over a folder of recordings."""

    fail_above: float
    statistic: StatisticName
    range: str | None = None  # --range: only what these ranges launched was compared; null: all work
    outcome: OutcomeName
    reasons: tuple[str, ...]
    entries: tuple[HistoryEntry, ...]
    application: tuple[HistoryItem, ...] = ()
    kernels: tuple[HistoryItem, ...] = ()
