"""Compare pairs of runs: measured now, until the gate can answer, or judged again from their directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_compare.comparison.compare import CompareRequest, Comparison, compare_pairs
from rpl_compare.comparison.judging import decide
from rpl_compare.comparison.model import Outcome, Verdict
from rpl_core.errors import UsageError
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text import counted
from rpl_measure.interleaved import MeasureRequest, measure_pairs
from rpl_measure.manifest import read_manifest
from rpl_measure.rank_tests import fewest_pairs
from rpl_measure.side import Side, stored_sides

if TYPE_CHECKING:
    from rpl_compare.comparison.model import CompareRule, Judged
    from rpl_core.ingest.claims import Readers
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.plugins.host import PluginHost
    from rpl_core.profiling import StepSink


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
    _require_enough(measure, request)

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


def _require_enough(measure: MeasureRequest, request: CompareRequest) -> None:
    fewest = fewest_pairs(request.rule.alpha / len(measure.looks) / 2)
    if measure.most_pairs < fewest:
        raise UsageError(
            f"{measure.most_pairs} pairs can never be significant at alpha {request.rule.alpha:g}: "
            f"their least two-sided p is {2.0 ** (1 - measure.most_pairs):.2g}",
            next_step=f"--pairs {fewest} or more",
        )


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
