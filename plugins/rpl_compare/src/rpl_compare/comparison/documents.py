"""``compare.json`` from judged items: translation, nothing is computed here but ratios from shifts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_compare.comparison.judging import CompareRule, Method, Outcome, Verdict, matches
from rpl_compare.contract import (
    CompareDocument,
    DriftPart,
    GatePart,
    HistoryDocument,
    HistoryEntry,
    HistoryItem,
    ItemPart,
    MethodPart,
    OneSidedKernel,
    SamplePart,
    SidePart,
    StepPart,
)
from rpl_core import __version__
from rpl_core.contracts.common import SCHEMA_VERSION, ProvenanceDoc
from rpl_core.documents import diagnostic_docs
from rpl_core.errors import MissingError
from rpl_core.model.metric import Origin
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_measure.rank_tests import median, robust_cv
from rpl_measure.samples import APPLICATION_KINDS, ItemKey, Kind, Sample, samples_of
from rpl_measure.series import FEWEST_ENTRIES, Level, entry_noise, find_levels
from rpl_measure.side import Side, check_comparable, load_side, make_side, range_of_sides, run_directories

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rpl_compare.comparison import CompareRequest, Comparison
    from rpl_compare.comparison.judging import Judged
    from rpl_core.ingest.claims import Readers
    from rpl_measure.series import Drift

UNPAIRED_TEST = "Mann-Whitney U, two-sided, exact up to 60 runs; Hodges-Lehmann ratio with its rank interval"
PAIRED_TEST = "Wilcoxon signed-rank on log ratios, two-sided, exact up to 50 pairs; Hodges-Lehmann ratio"


def compare_document(comparison: Comparison) -> CompareDocument:
    """The document; equal comparisons give equal documents."""
    items = [_item(judged, comparison.method) for judged in comparison.items]
    return CompareDocument(
        schema_version=SCHEMA_VERSION,
        provenance=ProvenanceDoc(
            tool_version=__version__,
            origin=Origin.weakest([comparison.base.origin, comparison.new.origin]).value,
        ),
        diagnostics=diagnostic_docs(comparison.diagnostics),
        method=_method(comparison),
        gate=_gate(comparison),
        base=_side(comparison.base),
        new=_side(comparison.new),
        application=tuple(item for item in items if item.kind != Kind.KERNEL.value),
        kernels=tuple(item for item in items if item.kind == Kind.KERNEL.value),
        only_base=_one_sided(comparison.only_base),
        only_new=_one_sided(comparison.only_new),
    )


def _method(comparison: Comparison) -> MethodPart:
    method, rule = comparison.method, comparison.rule
    return MethodPart(
        mode="interleaved" if method.paired else "unpaired",
        statistic=comparison.statistic.value,
        test=PAIRED_TEST if method.paired else UNPAIRED_TEST,
        alpha=rule.alpha,
        looks=method.looks,
        pairs=len(comparison.base.runs) if method.paired else None,
        min_share=rule.min_share,
        forced=rule.forced,
    )


def _gate(comparison: Comparison) -> GatePart:
    gate = comparison.gate
    return GatePart(
        outcome=gate.outcome.value,
        reasons=gate.reasons,
        fail_above=comparison.rule.fail_above,
        gated_items=gate.gated_items,
        worst_item=gate.worst.key.name if gate.worst else None,
        worst_change=gate.worst_change,
    )


def _side(side: Side) -> SidePart:
    manifest = side.manifests[0] if side.manifests else None
    names = {gpu.product or gpu.architecture for gpu in side.gpus} - {None}
    return SidePart(
        label=side.label,
        runs=len(side.runs),
        processes=max(run.processes for run in side.runs),
        origin=side.origin.value,
        device=", ".join(sorted(str(name) for name in names)) or None,
        range=side.range,
        command=side.command,
        collector=manifest.collector if manifest else None,
        collector_version=manifest.collector_version if manifest else None,
        formats=tuple(sorted({fact.format for fact in side.facts})),
        provenance=ProvenanceDoc(
            tool_version=manifest.tool_version if manifest else None,
            origin=side.origin.value,
            device=manifest.device if manifest else None,
            device_source=manifest.device_source if manifest else None,
            artefacts=tuple(doc for fact in side.facts for doc in fact.artefacts),
            plugins=manifest.plugins if manifest else (),
        ),
    )


def _item(judged: Judged, method: Method) -> ItemPart:
    evidence = judged.evidence
    ratio = None if evidence.shift is None else math.exp(evidence.shift)
    low, high = evidence.interval or (None, None)
    return ItemPart(
        name=judged.key.name,
        kind=judged.key.kind.value,
        gated=judged.gated,
        verdict=judged.verdict.value,
        reason=judged.reason,
        excludes_regression=judged.excludes_regression,
        base=_sample(judged.base, evidence.base_drift),
        new=_sample(judged.new, evidence.new_drift),
        ratio=ratio,
        change=None if evidence.shift is None else math.expm1(evidence.shift),
        ratio_low=None if low is None else math.exp(low),
        ratio_high=None if high is None else math.exp(high),
        confidence=1 - method.alpha,
        p=evidence.p,
        p_adjusted=judged.p_adjusted,
        noise=evidence.cv,
        minimum_detectable_change=judged.minimum_detectable_change,
        runs_needed=judged.runs_needed,
    )


def _sample(sample: Sample, drift: Drift | None) -> SamplePart:
    return SamplePart(
        runs=len(sample.values_ns),
        values_ns=sample.values_ns,
        median_ns=median(sample.values_ns) if sample.values_ns else None,
        cv=robust_cv(sample.values_ns),
        launches=sample.launches,
        share=sample.share,
        drift=None
        if drift is None
        else DriftPart(rho=drift.rho, p=drift.p, change=drift.change, flagged=drift.flagged),
    )


def _one_sided(samples: Iterable[tuple[str, Sample]]) -> tuple[OneSidedKernel, ...]:
    """Largest first."""
    rows: Sequence[tuple[str, Sample]] = sorted(samples, key=lambda row: (-(row[1].share or 0.0), row[0]))
    return tuple(
        OneSidedKernel(
            name=name,
            runs=len(sample.values_ns),
            median_ns=median(sample.values_ns),
            launches=sample.launches or 0.0,
            share=sample.share,
        )
        for name, sample in rows
    )


# Where a kernel or the application became slower, over a folder of recordings in time order.
#
# Steps that matter are those beyond the limit that still stand at the end.


@frozen(eq=False)
class _Entry:
    name: str
    created_utc: str | None
    side: Side
    samples: Mapping[ItemKey, Sample]


def compare_history(folder: Path, readers: Readers, request: CompareRequest) -> HistoryDocument:
    """Steps of every item. Copies take no part in the graph, because older runs may not have traced them.

    Raises ``DeviceMismatchError`` when an entry was recorded on another GPU than the first.
    """
    paths = _paths(folder)
    name = range_of_sides(paths, request.range)
    entries = [_entry(path, readers, request, name) for path in paths]
    checks = [
        check_comparable(
            entries[0].side, entry.side, allow_synthetic=request.allow_synthetic, forced=request.rule.forced
        )
        for entry in entries[1:] or entries
    ]
    blocking = tuple(dict.fromkeys(reason for check in checks for reason in check.blocking))
    unjudged = {key: reason for check in checks for key, reason in check.incomparable.items()}
    items = [
        _history_item(series, request, unjudged.get(series.key), entries)
        for series in _series(entries, request)
    ]
    outcome, reasons = _outcome(items, blocking)
    return HistoryDocument(
        schema_version=SCHEMA_VERSION,
        provenance=ProvenanceDoc(
            tool_version=__version__, origin=Origin.weakest([e.side.origin for e in entries]).value
        ),
        diagnostics=diagnostic_docs(d for check in checks if entries[1:] for d in check.diagnostics),
        fail_above=request.rule.fail_above,
        statistic=request.statistic.value,
        range=name,
        outcome=outcome.value,
        reasons=reasons,
        entries=tuple(_entry_doc(entry) for entry in entries),
        application=tuple(item for item in items if item.kind != Kind.KERNEL.value),
        kernels=tuple(item for item in items if item.kind == Kind.KERNEL.value),
    )


def _paths(folder: Path) -> Sequence[Path]:
    """The run directories in ``folder``, oldest first; without any, all of its entries by name."""
    if not folder.is_dir():
        raise MissingError(f"{folder} is no folder", next_step="name a folder of run directories")
    paths = run_directories(folder) or tuple(
        entry
        for entry in sorted(folder.iterdir())
        if not entry.name.startswith(".") and not entry.is_symlink()
    )
    if not paths:
        raise MissingError(f"{folder} holds no recording", next_step="name a folder of run directories")
    return paths


def _entry(path: Path, readers: Readers, request: CompareRequest, name: str | None) -> _Entry:
    loaded = load_side(path, readers, within=name)
    side = make_side("base", loaded, request.statistic, include_copies=False)
    created = loaded.manifests[0].created_utc if loaded.manifests else None
    return _Entry(path.name, created, attrs.evolve(side, label=path.name), samples_of(side.runs))


def _series(entries: Sequence[_Entry], request: CompareRequest) -> Iterator[Series]:
    """Application times first, then kernels by their largest share, then by name."""
    keys = {key for entry in entries for key in entry.samples}
    shares = {key: max(_share(entry, key) for entry in entries) for key in keys}
    for key in sorted(keys, key=lambda key: (_kind_order(key), -shares[key], key.name)):
        if not _is_asked_for(key, shares[key], request):
            continue
        usable = [entry for entry in entries if key in entry.samples and entry.samples[key].problem is None]
        if usable:
            yield Series(
                key=key,
                names=tuple(entry.name for entry in usable),
                log_times=tuple(math.log(median(entry.samples[key].values_ns)) for entry in usable),
            )


def _share(entry: _Entry, key: ItemKey) -> float:
    sample = entry.samples.get(key)
    return (sample.share or 0.0) if sample else 0.0


def _kind_order(key: ItemKey) -> int:
    return len(APPLICATION_KINDS) if key.kind is Kind.KERNEL else APPLICATION_KINDS.index(key.kind)


def _is_asked_for(key: ItemKey, share: float, request: CompareRequest) -> bool:
    if request.kernels:
        return key.kind is Kind.KERNEL and matches(key.name, request.kernels)
    return key.kind is not Kind.KERNEL or share >= request.rule.min_share


def _history_item(
    series: Series, request: CompareRequest, unjudged: str | None, entries: Sequence[_Entry]
) -> HistoryItem:
    verdict, reason, steps = (
        judge_series(series, request.rule) if unjudged is None else (Verdict.INCONCLUSIVE, unjudged, ())
    )
    known = {name: math.exp(time) for name, time in zip(series.names, series.log_times, strict=True)}
    return HistoryItem(
        name=series.key.name,
        kind=series.key.kind.value,
        verdict=verdict.value,
        reason=reason,
        entries=len(series.names),
        first_ns=math.exp(series.log_times[0]),
        last_ns=math.exp(series.log_times[-1]),
        values_ns=tuple(known.get(entry.name) for entry in entries),
        steps=steps,
    )


def _outcome(items: Sequence[HistoryItem], blocking: tuple[str, ...]) -> tuple[Outcome, tuple[str, ...]]:
    if blocking:
        return Outcome.NO_VERDICT, blocking
    if not items:
        return Outcome.NO_VERDICT, ("no item that decides is in the history",)
    for verdict, outcome in (
        (Verdict.REGRESSED, Outcome.REGRESSION),
        (Verdict.INCONCLUSIVE, Outcome.INCONCLUSIVE),
    ):
        deciding = [item for item in items if item.verdict == verdict.value]
        if deciding:
            return outcome, tuple(f"{item.name}: {item.reason}" for item in deciding)
    return Outcome.PASS, (f"no standing step beyond the limit in {counted(len(items), 'item')}",)


def _entry_doc(entry: _Entry) -> HistoryEntry:
    return HistoryEntry(
        name=entry.name,
        created_utc=entry.created_utc,
        runs=len(entry.side.runs),
        origin=entry.side.origin.value,
    )


@frozen
class Series:
    """One item over the entries that hold it, oldest first."""

    key: ItemKey
    names: tuple[str, ...]
    log_times: tuple[float, ...]


def judge_series(series: Series, rule: CompareRule) -> tuple[Verdict, str, tuple[StepPart, ...]]:
    """Verdict, its reason, and all steps beyond the limit in either direction.

    A step up that later steps undo is history, not a regression. One that only the newest entry shows is
    inconclusive: it may be an outlier.
    """
    count = len(series.log_times)
    if count < FEWEST_ENTRIES:
        few = counted(count, "entry is", "entries are")
        reason = f"{few} too few to tell a step from noise: {FEWEST_ENTRIES} are needed"
        return Verdict.INCONCLUSIVE, reason, ()
    levels = find_levels(series.log_times)
    pairs = [(a, b) for a, b in pairwise(levels) if abs(b.value - a.value) > rule.limit]
    steps = tuple(_step(series, before, after) for before, after in pairs)
    standing = [
        step
        for (before, after), step in zip(pairs, steps, strict=True)
        if after.value > before.value and levels[-1].value - before.value > rule.limit
    ]
    verdict, reason = _verdict(levels, standing, entry_noise(series.log_times), rule)
    return verdict, reason, steps


def _verdict(
    levels: Sequence[Level], standing: Sequence[StepPart], noise: float, rule: CompareRule
) -> tuple[Verdict, str]:
    confirmed = [step for step in standing if step.confirmed]
    if confirmed:
        last = confirmed[-1]
        return Verdict.REGRESSED, f"slower by {last.change:.1%} since {last.entry}"
    if standing:
        return (
            Verdict.INCONCLUSIVE,
            f"slower by {standing[-1].change:.1%} in the newest entry only: one more will tell",
        )
    if noise > rule.limit and not rule.forced:
        return (
            Verdict.INCONCLUSIVE,
            f"the entries vary by {math.expm1(noise):.1%}, so a step of the limit can't be seen",
        )
    if levels[-1].value - levels[0].value < -rule.limit:
        return Verdict.IMPROVED, "faster at the end than at the beginning"
    return Verdict.UNCHANGED, "no standing step beyond the limit"


def _step(series: Series, before: Level, after: Level) -> StepPart:
    return StepPart(
        entry=series.names[after.first],
        previous_entry=series.names[before.last],
        before_ns=math.exp(before.value),
        after_ns=math.exp(after.value),
        change=math.expm1(after.value - before.value),
        entries_before=before.entries,
        entries_after=after.entries,
        confirmed=after.entries > 1,
    )
