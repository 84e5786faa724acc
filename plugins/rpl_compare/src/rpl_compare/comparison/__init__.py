"""Compare two sides from start to end: comparable?, samples, verdicts, gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.text import shown_names
from rpl_compare.comparison.judging import (
    CompareRule,
    Gate,
    Judged,
    Method,
    Outcome,
    Question,
    TakeEvidence,
    Verdict,
    decide,
    item_name,
    judge_items,
    kernel_names,
    matches,
    paired_evidence,
    unpaired_evidence,
)
from rpl_core.errors import MissingError, NoVerdictError, UsageError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.text import counted, did_you_mean
from rpl_core.values import frozen
from rpl_measure.interleaved import MeasureRequest, measure_pairs
from rpl_measure.manifest import read_manifest
from rpl_measure.rank_tests import WARN_CV, NoiseLevel, fewest_pairs, noise_level
from rpl_measure.samples import Kind, Sample, Statistic, samples_of
from rpl_measure.side import Side, check_comparable, copies_everywhere, make_side, stored_sides

if TYPE_CHECKING:
    from rpl_core.ingest.claims import Readers
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.plugins.host import PluginHost
    from rpl_core.profiling import StepSink
    from rpl_measure.side import Loaded

# Compare pairs of runs: measured now, until the gate can answer, or judged again from their directory.


def measure_and_compare(
    measure: MeasureRequest,
    request: CompareRequest,
    *,
    collector: Collector,
    host: PluginHost,
    log: LineSink,
    step: StepSink,
) -> Comparison:
    """``measure_pairs`` with the gate as the stopping rule.

    What blocks an answer (origin, number of processes) does not change when the measurement ends.
    """
    measure = attrs.evolve(measure, statistic=request.statistic)
    fewest = fewest_pairs(request.rule.alpha / len(measure.looks) / 2)
    if measure.most_pairs < fewest:
        raise UsageError(
            f"{measure.most_pairs} pairs can never be significant at alpha {request.rule.alpha:g}: "
            f"their least two-sided p is {2.0 ** (1 - measure.most_pairs):.2g}",
            next_step=f"--pairs {fewest} or more",
        )

    def decided(base: Side, new: Side) -> bool:
        return is_settled(compare_pairs(base, new, request, measure.looks).items, request.rule)

    measured = measure_pairs(measure, collector=collector, host=host, decided=decided, log=log, step=step)
    comparison = compare_pairs(measured.base, measured.new, request, measured.looks)
    if not measured.out_of_time:
        return comparison
    return attrs.evolve(
        comparison, diagnostics=(*comparison.diagnostics, _cut_short(measured.pairs, measure))
    )


def is_settled(items: Sequence[Judged], rule: CompareRule) -> bool:
    """Whether more pairs would only repeat the answer.

    A regression ends the measurement. A pass ends it unless an item that looks faster than the limit is not
    proven to be: who measures a gain wants to see it confirmed.
    """
    outcome = decide(items, ()).outcome
    if outcome is Outcome.PASS:
        return not any(item.gated and _seems_improved(item, rule) for item in items)
    return outcome is Outcome.REGRESSION


def _seems_improved(item: Judged, rule: CompareRule) -> bool:
    return item.verdict is Verdict.INCONCLUSIVE and (item.evidence.shift or 0.0) < -rule.limit


def _cut_short(pairs: int, measure: MeasureRequest) -> Diagnostic:
    return Diagnostic(
        "compare.out_of_time",
        f"the total time of {measure.total_time_s:g} s ended the measurement after {counted(pairs, 'pair')}",
        remedy="raise --total-time",
        count=pairs,
    )


def compare_stored_pairs(directory: Path, readers: Readers, request: CompareRequest) -> Comparison:
    """All pairs of which both runs finished; an interrupted comparison gives what it has."""
    base, new = stored_sides(directory, readers, request.statistic)
    looks = read_manifest(directory).looks
    return compare_pairs(base, new, request, looks or (len(base.runs),))


@frozen
class CompareRequest:
    """What to compare, and how strictly."""

    rule: CompareRule
    statistic: Statistic = Statistic.SUM
    kernels: tuple[str, ...] = ()
    range: str | None = None  # as asked: None takes what the runs were analysed for, "" all work
    allow_synthetic: bool = False


@frozen(eq=False)
class Comparison:
    """Everything that was found. ``only_base`` and ``only_new`` hold kernels of one side."""

    base: Side
    new: Side
    rule: CompareRule
    statistic: Statistic
    method: Method
    items: tuple[Judged, ...]
    gate: Gate
    only_base: tuple[tuple[str, Sample], ...]
    only_new: tuple[tuple[str, Sample], ...]
    diagnostics: tuple[Diagnostic, ...]


def compare_recordings(base: Loaded, new: Loaded, request: CompareRequest) -> Comparison:
    """Two recordings that were made one after the other: every run is an independent value."""
    copies = copies_everywhere((base, new))
    sides = (
        make_side("base", base, request.statistic, include_copies=copies),
        make_side("new", new, request.statistic, include_copies=copies),
    )
    return compare_unpaired(*sides, request)


def compare_unpaired(base: Side, new: Side, request: CompareRequest) -> Comparison:
    """As ``compare_recordings``, for sides that were observed already."""
    method = Method(paired=False, alpha=request.rule.alpha)
    hint = Diagnostic(
        "compare.not_interleaved",
        "BASE and NEW were not measured in turns: a drift of clock or temperature between them looks like a "
        "change",
        severity=Severity.INFO,
        remedy="`rpl compare --interleaved --base CMD --new CMD` measures pairs",
    )
    return _compare(base, new, request, method, unpaired_evidence, (hint,))


def compare_pairs(base: Side, new: Side, request: CompareRequest, looks: tuple[int, ...]) -> Comparison:
    """Sides whose runs belong together in pairs; alpha is shared evenly over all ``looks``."""
    method = Method(paired=True, alpha=request.rule.alpha / len(looks), looks=looks)
    return _compare(base, new, request, method, paired_evidence, ())


def _compare(
    base: Side,
    new: Side,
    request: CompareRequest,
    method: Method,
    take_evidence: TakeEvidence,
    hints: tuple[Diagnostic, ...],
) -> Comparison:
    checked = check_comparable(base, new, allow_synthetic=request.allow_synthetic, forced=request.rule.forced)
    question = Question(request.rule, method, take_evidence, request.kernels, checked.incomparable)
    items = judge_items(base.runs, new.runs, question)
    only_base, only_new = _one_sided(base, new, request), _one_sided(new, base, request)
    known = _kernels_of(base, new)
    wanted = " or ".join(repr(name) for name in request.kernels)
    if request.kernels and not any(item.key.kind is Kind.KERNEL for item in items):
        if only_base or only_new:
            side = "BASE" if only_base else "NEW"
            raise NoVerdictError(f"the kernel {wanted} ran in {side} only, so there is nothing to compare")
        meant = did_you_mean(request.kernels[0], (*shown_names(known).values(), *known))
        raise MissingError(
            f"no kernel of BASE or NEW matches {wanted}{meant}", next_step="see `rpl report RUN`"
        )
    if not items:
        raise NoVerdictError(
            "BASE and NEW hold no time of the same kind",
            cause="one was recorded with a profiler, the other by wall clock only",
            next_step="record both in the same way",
        )
    one_sided = (name for name, _ in (*only_base, *only_new))
    names = kernel_names((*(i.key.name for i in items if i.key.kind is Kind.KERNEL), *one_sided))
    return Comparison(
        base=base,
        new=new,
        rule=request.rule,
        statistic=request.statistic,
        method=method,
        items=items,
        gate=decide(items, checked.blocking, names),
        only_base=only_base,
        only_new=only_new,
        diagnostics=(
            *hints,
            *checked.diagnostics,
            *_noise(items, names),
            *_launches(items, names),
            *_read(base, new),
        ),
    )


def _one_sided(side: Side, other: Side, request: CompareRequest) -> tuple[tuple[str, Sample], ...]:
    samples, others = samples_of(side.runs), samples_of(other.runs)
    return tuple(
        (key.name, sample)
        for key, sample in samples.items()
        if key.kind is Kind.KERNEL
        and key not in others
        and (not request.kernels or matches(key.name, request.kernels))
    )


def _kernels_of(*sides: Side) -> Sequence[str]:
    keys = (key for side in sides for key in samples_of(side.runs))
    return list(dict.fromkeys(key.name for key in keys if key.kind is Kind.KERNEL))


def _called(item: Judged, names: Mapping[str, str]) -> str:
    return item_name(item.key.kind.value, item.key.name, names)


def _noise(items: tuple[Judged, ...], names: Mapping[str, str]) -> Iterator[Diagnostic]:
    noisy = [item for item in items if item.gated and noise_level(item.evidence.cv) is not NoiseLevel.QUIET]
    if noisy:
        worst = max(noisy, key=lambda item: (item.evidence.cv or 0.0, item.key.name))
        detectable = worst.minimum_detectable_change
        least = "no change can be" if detectable is None else f"changes below {detectable:.1%} are not"
        yield Diagnostic(
            "compare.noisy",
            f"{len(noisy)} of the deciding times vary by more than {WARN_CV:.0%} (CV) from run to run; "
            f"worst: {_called(worst, names)} with {worst.evidence.cv or 0:.1%}, where {least} found reliably",
            cause="clock or thermal changes, other load, or very short kernels",
            remedy="fix the clocks, record more runs, or measure interleaved",
            count=len(noisy),
        )


def _launches(items: tuple[Judged, ...], names: Mapping[str, str]) -> Iterator[Diagnostic]:
    changed = [
        item for item in items if item.key.kind is Kind.KERNEL and item.base.launches != item.new.launches
    ]
    if changed:
        first = changed[0]
        yield Diagnostic(
            "compare.launches_differ",
            f"{counted(len(changed), 'kernel is', 'kernels are')} launched another number of times; largest: "
            f"{_called(first, names)} with {first.base.launches:g} against {first.new.launches:g} per run",
            cause="another amount of work, or a kernel that was split or fused",
            remedy="--statistic median compares single dispatches",
            count=len(changed),
        )


def _read(base: Side, new: Side) -> Iterator[Diagnostic]:
    """What loading and the readers had to say, once per side."""
    for side in (base, new):
        of_runs = (diagnostic for fact in side.facts for diagnostic in fact.diagnostics)
        for diagnostic in dict.fromkeys((*side.diagnostics, *of_runs)):
            yield attrs.evolve(diagnostic, where=f"{side.label}: {diagnostic.where or 'recording'}")
