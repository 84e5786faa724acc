"""One bottleneck label per kernel, by rules that are data, with evidence and near-misses.

The figures of a kernel are gathered from earlier analyses, all rules are tested against them, and the
strongest rule that holds gives the label. How sure that label is follows from the evidence that is present:
see ``Confidence``. Built-in rules stand in ``bottleneck.toml``, plugins add theirs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from math import prod
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.contracts.analysis import Confidence
from rpl_analysis.counters.quantities import KernelQuantities, is_open_above, scaled
from rpl_analysis.facts import BOTTLENECKS, KERNEL_QUANTITIES, KERNEL_TIMES, OCCUPANCY, ROOFLINE
from rpl_analysis.hookspecs import RULES
from rpl_analysis.interfaces import BottleneckLabel, Comparison, Condition, Rule, label_name
from rpl_codeobject.occupancy import NoOccupancy, Occupancy
from rpl_core.errors import BadDataError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.model.trace import Trace, distinct_values
from rpl_core.plugins.catalog import NamedContributions
from rpl_core.values import frozen

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RoofPart
    from rpl_analysis.runtime.timing import KernelTime
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.recording import Recording

# The figures that rules test, gathered per kernel from earlier analyses.
#
# ==========================  ==========================================================================
# ``hbm_utilization``         share of the memory ceiling that the traffic beyond L2 reaches
# ``l2_utilization``          share of the L2 ceiling that the traffic between vL1D and L2 reaches
# ``lds_utilization``         share of the LDS ceiling that indexed accesses reach, less bank conflicts; zero
#                             for kernels that allocate none
# ``compute_utilization``     share of the arithmetic ceilings, on the busier pipe
# ``theoretical_occupancy``   waves per SIMD over the architectural maximum
# ``grid_fill``               waves launched over the waves that the device holds at that occupancy
# ``active_lane_fraction``    lanes with work in an average vector instruction, over the wave size
# ``valu_utilization``        part of the time in which the vector units issue: an interval, since the
#                             counter window is longer than a kernel (docs/reference/counters.md, 1.4)
# ``mfma_utilization``        part of the time in which the matrix units are busy, likewise
# ``dependency_wait_fraction``  part of the waves' life spent waiting for outstanding results;
#                             without counters that of the waves of a thread trace
# ``trace_headroom``          part of the traced waves' life in which they waited for memory or were idle
# ==========================  ==========================================================================

#: Quantities of the counter map that rules use under the same name.
_FROM_COUNTERS = (
    "active_lane_fraction",
    "valu_utilization",
    "mfma_utilization",
    "dependency_wait_fraction",
    "lds_bank_conflicts_per_access",
)

_NO_COUNTERS = "no counters were recorded for this kernel"


@frozen(eq=False)
class KernelEvidence:
    """Everything that earlier analyses know about one kernel."""

    time: KernelTime
    occupancy: Occupancy | NoOccupancy | None
    roofline: KernelRooflineDoc | None
    quantities: KernelQuantities | None
    uses_lds: bool = True  # or it is not known
    others: Mapping[str, Metric] = attrs.field(factory=dict)  # scalar facts of other analyzers


def figures_of(evidence: KernelEvidence, device: DeviceModel | None, origin: Origin) -> Mapping[str, Metric]:
    """All figures of one kernel; unknown ones carry their reason.

    A scalar fact of another analyzer stands for a figure of the same name that counters leave unknown.
    """
    why_none = _why_no_counters(device, origin)
    figures = {
        **ceiling_shares(evidence.roofline, why_none, uses_lds=evidence.uses_lds),
        "theoretical_occupancy": _occupancy(evidence.occupancy),
        "grid_fill": _grid_fill(evidence, device, origin),
    }
    quantities = evidence.quantities
    counted: Iterable[str] = ()
    if quantities is not None:
        counted = quantities.values
    elif device is not None:
        counted = (quantity.name for quantity in device.counter_map.quantities)
    for name in (*_FROM_COUNTERS, *counted):
        if name not in figures:
            reason = why_none if quantities is None else f"the device's counter map has no {name}"
            figures[name] = (quantities and quantities.per_launch(name)) or Metric.unknown("fraction", reason)
    for name, metric in evidence.others.items():
        if name not in figures or figures[name].value is None:
            figures[name] = metric
    return figures


def _why_no_counters(device: DeviceModel | None, origin: Origin) -> str:
    """With what collects them where that can be: an emulator has none, an unknown device defines none."""
    if origin is Origin.MODELLED:
        return f"{_NO_COUNTERS}: it ran in an emulator, and only a GPU has them"
    if device is None or not device.counter_map.quantities:
        return _NO_COUNTERS
    return f"{_NO_COUNTERS}; collect them with --roofline"


def _occupancy(occupancy: Occupancy | NoOccupancy | None) -> Metric:
    if occupancy is None or isinstance(occupancy, NoOccupancy):
        reason = occupancy.reason if occupancy else "the occupancy analyzer did not run"
        return Metric.unknown("fraction", reason)
    return Metric(
        value=occupancy.fraction,
        unit="fraction",
        exactness=Exactness.EXACT,
        origin=Origin.MODELLED,
        formula=f"waves per SIMD / {occupancy.max_waves_per_simd}, limited by {occupancy.limiter}",
    )


def _grid_fill(evidence: KernelEvidence, device: DeviceModel | None, origin: Origin) -> Metric:
    """Waves of one launch / (compute units * SIMDs * waves per SIMD at the theoretical occupancy)."""
    time, occupancy = evidence.time, evidence.occupancy
    if time.workgroup is None or time.grid is None:
        return Metric.unknown("fraction", "the launch geometry is not recorded")
    if device is None or device.compute_units is None:
        return Metric.unknown("fraction", "the number of compute units is unknown")
    if occupancy is None or isinstance(occupancy, NoOccupancy):
        return Metric.unknown("fraction", "the theoretical occupancy is unknown")
    if occupancy.wave_size is None:
        return Metric.unknown("fraction", "the wave size of this kernel is unknown")
    groups = prod(-(-g // max(w, 1)) for g, w in zip(time.grid, time.workgroup, strict=True))
    waves = groups * -(-prod(time.workgroup) // occupancy.wave_size)
    slots = device.compute_units * device.simd_per_cu * occupancy.waves_per_simd
    return Metric(
        value=waves / slots,
        unit="fraction",
        exactness=Exactness.EXACT,
        origin=origin,
        formula="launched waves / (compute_units * simd_per_cu * waves_per_simd)",
    )


# Shares of ceilings as the rules test them: bandwidth beyond L2, of L2 and of LDS, arithmetic.

#: Begins the note of a share above one.
ABOVE_CEILING = "The figure is above its ceiling"

_SHARES = ("hbm_utilization", "l2_utilization", "lds_utilization", "compute_utilization")
_NO_LDS = Metric(0.0, "fraction", Exactness.EXACT, formula="no launch allocates LDS")
_CACHED = f"{ABOVE_CEILING}: Infinity Cache hits count as traffic beyond L2, or the runs did different work."
_WRONG = f"{ABOVE_CEILING}: counter passes and timing run did different work, or the clock is another one."


def ceiling_shares(
    roofline: KernelRooflineDoc | None, why_none: str, *, uses_lds: bool = True
) -> Mapping[str, Metric]:
    """``hbm_utilization``, ``l2_utilization``, ``lds_utilization`` and ``compute_utilization`` of one kernel.

    ``why_none`` says why there is no roofline. A share above one is no share: it stays visible, as an
    estimate with a note. Without counters of LDS a kernel that allocates none has a share of zero there.
    """
    if roofline is None:
        unknown = Metric.unknown("fraction", why_none)
        shares = dict.fromkeys(_SHARES, unknown)
    else:
        shares = {
            "hbm_utilization": _marked(_hbm_share(roofline), _CACHED),
            "l2_utilization": _marked(_level_share(roofline, "l2", "l2_bytes"), _WRONG),
            "lds_utilization": _marked(_level_share(roofline, "lds", "lds_bytes_moved"), _WRONG),
            "compute_utilization": _marked(_compute_share(roofline), _WRONG),
        }
    if shares["lds_utilization"].value is None and not uses_lds:
        shares["lds_utilization"] = _NO_LDS
    return shares


def _hbm_share(roofline: KernelRooflineDoc) -> Metric:
    roof = roofline.roof
    if roof.peak_gbps is None:
        return roof.memory_share
    formula = _rate_over_ceiling(roofline.achieved_gbps, roof.peak_gbps, _origin(roof))
    return attrs.evolve(roof.memory_share, formula=formula)


def _compute_share(roofline: KernelRooflineDoc) -> Metric:
    share = roofline.roof.compute_share
    return attrs.evolve(share, formula=share.formula and f"{share.formula} ({_origin(roofline.roof)})")


def _origin(roof: RoofPart) -> str:
    return roof.origin.value if roof.origin is not None else "unknown"


def _rate_over_ceiling(rate: Metric, peak_gbps: float, origin: str) -> str:
    shown = "?" if rate.value is None else f"{rate.value:.4g}"
    return f"{shown} GB/s / {peak_gbps:.6g} GB/s ({origin} ceiling)"


def _level_share(roofline: KernelRooflineDoc, name: str, quantity: str) -> Metric:
    level = next((level for level in roofline.levels if level.level == name), None)
    if level is None:
        return Metric.unknown("fraction", f"the device's counter map has no {quantity}")
    if level.spec_gbps is None:
        return Metric.unknown("fraction", f"no data-sheet ceiling of {name.upper()} is known")
    formula = _rate_over_ceiling(level.achieved_gbps, level.spec_gbps, "spec")
    return scaled(level.achieved_gbps, 1 / level.spec_gbps, "fraction", formula)


def _marked(share: Metric, note: str) -> Metric:
    if share.value is None or share.value <= 1.0:
        return share
    return attrs.evolve(share, exactness=Exactness.ESTIMATE, upper=None, note=note)


@frozen
class TestedCondition:
    """A condition with the figure it was tested against; ``holds`` is ``None`` when that is unknown."""

    condition: Condition
    metric: Metric
    holds: bool | None


@frozen
class TestedRule:
    """``holds``: False as soon as one condition fails, None while one is unknown, True when all hold."""

    rule: Rule
    conditions: tuple[TestedCondition, ...]
    holds: bool | None


def _tested(rule: Rule, figures: Mapping[str, Metric]) -> TestedRule:
    conditions = tuple(_test_condition(condition, figures) for condition in rule.conditions)
    results = [condition.holds for condition in conditions]
    return TestedRule(rule, conditions, False if False in results else None if None in results else True)


@frozen
class Classification:
    """The label of one kernel. ``unknown`` says which quantities were not recorded, and why.

    ``headroom_reason`` says why ``headroom_fraction`` is unknown. ``label_by_active_lanes`` is the label
    without the work of idle lanes, where that is another one.
    """

    kernel: str
    label: BottleneckLabel | str
    confidence: Confidence
    reason: str
    evidence: tuple[TestedRule, ...]
    near_misses: tuple[TestedRule, ...]
    unknown: tuple[str, ...]
    headroom_fraction: float | None
    headroom_source: str | None
    headroom_reason: str | None = None
    label_by_active_lanes: BottleneckLabel | str | None = None


#: A failed condition within this relative distance of its threshold makes a near-miss (chosen).
NEAR_MISS = 0.10
_BY_COUNTERS = "counters: 1 - max(bandwidth / ceiling, flops / ceiling)"
#: Ends of an interval that are farther apart than this leave the headroom unknown (chosen).
_WIDEST_INTERVAL = 0.01


def classify(kernel: str, figures: Mapping[str, Metric], rules: Sequence[Rule]) -> Classification:
    """Label ``kernel`` by ``rules`` (already in order of precedence). Deterministic."""
    tested = [_tested(rule, figures) for rule in rules]
    winner = next((t for t in tested if t.holds), None)
    competitors = _competitors_of(winner, tested)
    headroom = headroom_of(figures)
    return Classification(
        kernel=kernel,
        label=winner.rule.label if winner else BottleneckLabel.UNCLASSIFIED,
        confidence=_confidence_of(winner, competitors),
        reason=_reason(winner, competitors),
        evidence=tuple(t for t in tested if t.holds),
        near_misses=tuple(t for t in tested if t.holds is False and _is_near(t)),
        unknown=_unknown(tested),
        headroom_fraction=headroom.fraction,
        headroom_source=headroom.source,
        headroom_reason=headroom.reason,
    )


def _test_condition(condition: Condition, figures: Mapping[str, Metric]) -> TestedCondition:
    metric = figures.get(condition.quantity)
    if metric is None:
        metric = Metric.unknown("", f"no analyzer gives {condition.quantity}")
    return TestedCondition(condition, metric, _holds(condition, metric))


def _holds(condition: Condition, metric: Metric) -> bool | None:
    """Whether the condition holds whatever the true value is within the metric's bounds.

    A lower bound proves ">=" and refutes "<", but neither refutes ">=" nor proves "<"; so does an estimate of
    a part, as far as estimates prove anything.
    """
    if metric.value is None:
        return None
    low = condition.holds(metric.value)
    if metric.exactness is Exactness.INTERVAL and metric.upper is not None:
        high = condition.holds(metric.upper)
        return low if low == high else None
    if is_open_above(metric):
        decided = metric.value >= condition.threshold
        return (condition.comparison is Comparison.AT_LEAST) if decided else None
    return low


def _reason(winner: TestedRule | None, competitors: _Competitors) -> str:
    if winner is None:
        undecided = _rule_ids((*competitors.untested, *competitors.backed))
        if undecided:
            return f"no rule is proven; not testable with this recording: {undecided}"
        return "every rule was tested and none applies"
    parts = [winner.rule.explanation]
    if competitors.untested:
        parts.append(f"Stronger rules that this recording can't test: {_rule_ids(competitors.untested)}.")
    parts.extend(
        f"{rule.id} can't be tested, but {rule.corroborates}, which looks at the same limit, was."
        for rule in (t.rule for t in competitors.backed)
    )
    if competitors.close:
        parts.append(f"A stronger rule narrowly fails by an inexact figure: {_rule_ids(competitors.close)}.")
    notes = dict.fromkeys(t.metric.note for t in winner.conditions if t.metric.value is not None)
    parts.extend(note for note in notes if note and note.startswith(ABOVE_CEILING))
    return " ".join(parts)


def _rule_ids(rules: Sequence[TestedRule]) -> str:
    return ", ".join(t.rule.id for t in rules)


def _unknown(tested: Sequence[TestedRule]) -> tuple[str, ...]:
    reasons: dict[str, str] = {}
    for rule in tested:
        for part in rule.conditions:
            if part.metric.value is None:
                reasons[part.condition.quantity] = part.metric.reason or "not recorded"
    return tuple(f"{quantity}: {reason}" for quantity, reason in sorted(reasons.items()))


@frozen
class _Competitors:
    """Rules stronger than the one that gave the label which might have given another label.

    ``untested`` lack a figure. So do ``backed``, but a rule that looks at the same limit was decided.
    ``close`` failed narrowly, by a figure that is not exact.
    """

    untested: tuple[TestedRule, ...]
    backed: tuple[TestedRule, ...]
    close: tuple[TestedRule, ...]


def _competitors_of(winner: TestedRule | None, tested: Sequence[TestedRule]) -> _Competitors:
    """``tested`` in order of precedence. A rule of the winner's own label can't change the label."""
    stronger = tested if winner is None else tested[: tested.index(winner)]
    rivals = [t for t in stronger if winner is None or t.rule.label != winner.rule.label]
    decided = {t.rule.id for t in tested if t.holds is not None}
    undecided = [t for t in rivals if t.holds is None and t.rule.required]
    return _Competitors(
        untested=tuple(t for t in undecided if t.rule.corroborates not in decided),
        backed=tuple(t for t in undecided if t.rule.corroborates in decided),
        close=tuple(t for t in rivals if t.holds is False and _is_near(t) and not _exact(_failed(t))),
    )


def _confidence_of(winner: TestedRule | None, competitors: _Competitors) -> Confidence:
    """The confidence in the label of ``winner``."""
    if winner is None:
        return Confidence.NONE
    if competitors.untested:
        return Confidence.LOW
    unshaken = not competitors.backed and not competitors.close
    return Confidence.HIGH if unshaken and _exact(winner.conditions) else Confidence.MEDIUM


def _is_near(tested: TestedRule) -> bool:
    """Every failed condition is within ``NEAR_MISS`` of its threshold and the others hold."""
    if any(t.holds is None for t in tested.conditions):
        return False
    return all(_distance(t) <= NEAR_MISS for t in _failed(tested))


def _failed(tested: TestedRule) -> list[TestedCondition]:
    return [t for t in tested.conditions if t.holds is False]


def _exact(conditions: Sequence[TestedCondition]) -> bool:
    return all(t.metric.exactness is Exactness.EXACT for t in conditions)


def _distance(tested: TestedCondition) -> float:
    """Relative distance of the value from its threshold; of the nearer end of an interval."""
    metric, threshold = tested.metric, tested.condition.threshold
    if metric.value is None:
        return float("inf")
    ends = [metric.value] if metric.upper is None else [metric.value, metric.upper]
    nearest = min(abs(end - threshold) for end in ends)
    return nearest / abs(threshold) if threshold else nearest


@frozen
class Headroom:
    """``fraction`` with its source, or ``None`` with the reason."""

    fraction: float | None
    source: str | None = None
    reason: str | None = None


def headroom_of(figures: Mapping[str, Metric]) -> Headroom:
    """From counters when they decide it, else from the thread trace, else unknown.

    A share of which only a lower bound is known would overstate the headroom, and one above its ceiling is
    no share of it: both leave it unknown.
    """
    shares = {name: figures.get(name) for name in ("hbm_utilization", "compute_utilization")}
    problem = next((why for name, share in shares.items() if (why := _unusable(name, share))), None)
    known = [share for share in shares.values() if share is not None and share.value is not None]
    if problem is None:
        low, high = max(_low(share) for share in known), max(_high(share) for share in known)
        if high - low <= _WIDEST_INTERVAL:
            estimated = any(share.exactness is Exactness.ESTIMATE for share in known)
            return Headroom(1.0 - high, f"{_BY_COUNTERS}{' (an estimate)' if estimated else ''}")
        problem = f"the nearer ceiling is reached to between {low:.0%} and {high:.0%}"
    traced = figures.get("trace_headroom")
    if traced is not None and traced.value is not None:
        return Headroom(traced.value, traced.source)
    return Headroom(None, reason=problem)


def _unusable(name: str, share: Metric | None) -> str | None:
    if share is None or share.value is None:
        return f"{name} is unknown"
    if _high(share) > 1.0:
        return f"{name} is {_high(share):.0%} of its ceiling, so the figure is no share of it"
    if is_open_above(share):
        return f"{name} is known as a lower bound only" if not share.partial else f"{name} is known in part"
    return None


def _low(share: Metric) -> float:
    return share.value or 0.0


def _high(share: Metric) -> float:
    return _low(share) if share.upper is None else share.upper


# Rules from TOML: the built-in file, and the form in which plugins may ship theirs.


def builtin_rules() -> tuple[Rule, ...]:
    """The rules of ``bottleneck.toml`` beside this module."""
    text = resources.files(__package__).joinpath("bottleneck.toml").read_text(encoding="utf-8")
    return parse_rules(text, "bottleneck.toml")


def parse_rules(text: str, origin: str) -> tuple[Rule, ...]:
    """Rules from TOML ``text``. Raises ``BadDataError`` naming ``origin`` and the rule at fault."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the library raises others than its own for long numbers
        raise BadDataError(f"{origin} is not valid TOML: {error}") from None
    entries = document.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadDataError(f"{origin}: rules are tables: [[rule]]")
    return tuple(_rule(entry, origin) for entry in entries)


def _rule(entry: dict[str, Any], origin: str) -> Rule:
    try:
        return Rule(
            id=_word(entry["id"]),
            label=_word(entry["label"]),
            priority=int(entry["priority"]),
            conditions=_conditions(entry["conditions"]),
            explanation=_word(entry["explanation"]),
            required=entry.get("required", False) is True,
            corroborates=None if entry.get("corroborates") is None else _word(entry["corroborates"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        rule = repr(entry.get("id", "?"))[:80]
        problem = f"{error} is missing" if isinstance(error, KeyError) else error
        raise BadDataError(f"{origin}, rule {rule}: {problem}") from None


def _word(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected text, found {value!r}")
    return value


def _conditions(entries: object) -> tuple[Condition, ...]:
    if not isinstance(entries, list) or not entries or not all(isinstance(c, dict) for c in entries):
        raise ValueError("it needs conditions, or it would always win")
    return tuple(_condition(entry) for entry in entries)


def _condition(entry: dict[str, Any]) -> Condition:
    quantity, threshold = _word(entry["quantity"]), float(entry["threshold"])
    if not quantity.isidentifier() or not math.isfinite(threshold):
        raise ValueError(f"{quantity!r} and {threshold} are no quantity and threshold")
    return Condition(quantity, Comparison(entry["comparison"]), threshold, source=_word(entry["source"]))


class BottleneckAnalyzer(Analyzer):
    """Fact ``BOTTLENECKS``: kernel name -> ``Classification``.

    Rules may test every scalar fact and every quantity of the device's counter map.
    """

    name = "bottleneck"
    summary = "one bottleneck label per kernel with its evidence"
    requires = frozenset({KERNEL_TIMES, OCCUPANCY, KERNEL_QUANTITIES, ROOFLINE})
    provides = frozenset({BOTTLENECKS})
    wants_figures = True

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        facts = context.facts
        quantities = facts.get(KERNEL_QUANTITIES) or {}
        rooflines = {kernel.name: kernel for kernel in facts[ROOFLINE].kernels}
        no_lds = _kernels_without_lds(context.recording)
        rules, refused = _without_foreign_labels(context.offered(RULES))
        classifications = {}
        for name, time in facts[KERNEL_TIMES].items():
            evidence = KernelEvidence(
                time=time,
                occupancy=facts[OCCUPANCY].get(name),
                roofline=rooflines.get(name),
                quantities=quantities.get(name),
                uses_lds=name not in no_lds,
                others=facts.figures(name),
            )
            figures = figures_of(evidence, context.device, context.recording.origin)
            classifications[name] = _with_active_lanes(
                classify(name, figures, rules), evidence, figures, rules
            )
        return AnalysisOutcome({BOTTLENECKS: classifications}, refused)


def _without_foreign_labels(offered: Iterable[Rule]) -> tuple[tuple[Rule, ...], tuple[Diagnostic, ...]]:
    """Without rules that give the label of another plugin, which would say what that plugin never said."""
    accepted, refused = [], []
    for rule in offered:
        label = label_name(rule.label)
        plugin = offered.plugin_of(rule.id) if isinstance(offered, NamedContributions) else None
        space, colon, _ = label.partition(":")
        # A module that was named with ``-p`` has no name of a plugin yet.
        if plugin is None or not colon or "." in plugin or space in _name_spaces(plugin):
            accepted.append(rule)
            continue
        fact = (
            f"the rule {rule.id!r} of plugin {plugin!r} is left out: its label {label!r} is of another plugin"
        )
        remedy = f"begin its label with {_name_spaces(plugin)[0]!r} and a colon"
        refused.append(Diagnostic("plugin.foreign_label", fact, remedy=remedy, where=f"plugin {plugin}"))
    return tuple(accepted), tuple(refused)


def _name_spaces(plugin: str) -> tuple[str, ...]:
    """What labels of ``plugin`` may begin with: its name as a plugin, distribution or module."""
    name = plugin.lower().replace("_", "-").removeprefix("rpl-")
    spellings = (name, f"rpl-{name}")
    return (*spellings, *(spelling.replace("-", "_") for spelling in spellings))


def _with_active_lanes(
    classification: Classification,
    evidence: KernelEvidence,
    figures: Mapping[str, Metric],
    rules: Sequence[Rule],
) -> Classification:
    """``classification`` with its label if the work of idle lanes were left out of the FLOPs."""
    share = evidence.roofline.active_lane_share if evidence.roofline else None
    if share is None:
        return classification
    then = classify(classification.kernel, {**figures, "compute_utilization": share}, rules).label
    return (
        classification
        if then == classification.label
        else attrs.evolve(classification, label_by_active_lanes=then)
    )


def _kernels_without_lds(recording: Recording) -> frozenset[str]:
    """Names of kernels all of whose launches are recorded with zero bytes of LDS, static and dynamic."""
    without: set[str] = set()
    with_lds: set[str] = set()
    for trace in recording.traces:
        users = _kernels_with_lds(trace)
        names = {trace.kernels[i].name for i in distinct_values(trace.dispatches.kernel).tolist() if i >= 0}
        with_lds |= users
        without |= names - users
    return frozenset(without - with_lds)


def _kernels_with_lds(trace: Trace) -> set[str]:
    """Kernels with a launch that has LDS, or of which that is not recorded."""
    shape, kernel = trace.dispatches.shape, trace.dispatches.kernel
    lds = np.append(trace.shapes.lds_bytes, -1)  # index -1: no shape
    rows = (lds[shape] != 0) & (kernel >= 0)
    return {trace.kernels[i].name for i in distinct_values(kernel[rows]).tolist()}
