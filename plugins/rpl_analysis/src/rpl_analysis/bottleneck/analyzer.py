"""The bottleneck analyzer: one label per kernel, by the rules that plugins contributed."""

from __future__ import annotations

import math
import sys
from importlib import resources
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.bottleneck.classify import KernelEvidence, classify, figures_of
from rpl_analysis.facts import BOTTLENECKS, KERNEL_QUANTITIES, KERNEL_TIMES, OCCUPANCY, ROOFLINE
from rpl_analysis.hookspecs import RULES
from rpl_analysis.interfaces import Comparison, Condition, Rule, label_name
from rpl_core.errors import BadDataError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.trace import distinct_values
from rpl_core.plugins.catalog import NamedContributions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rpl_analysis.bottleneck.classify import Classification
    from rpl_core.model.metric import Metric
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace

# Read rules from TOML: the built-in file, and the form in which plugins may ship theirs.

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def builtin_rules() -> tuple[Rule, ...]:
    """The rules of ``rules.toml`` beside this module."""
    text = resources.files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    return parse_rules(text, "rules.toml")


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
    except KeyError as error:
        raise BadDataError(f"{origin}, rule {_named(entry)}: {error} is missing") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise BadDataError(f"{origin}, rule {_named(entry)}: {error}") from None


def _named(entry: dict[str, Any]) -> str:
    return repr(entry.get("id", "?"))[:80]


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
        rules, refused = _own_labels_only(context.offered(RULES))
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


def _own_labels_only(offered: Iterable[Rule]) -> tuple[tuple[Rule, ...], tuple[Diagnostic, ...]]:
    """Without rules that give the label of another plugin, which would say what that plugin never said."""
    kept, refused = [], []
    for rule in offered:
        label = label_name(rule.label)
        plugin = offered.plugin_of(rule.id) if isinstance(offered, NamedContributions) else None
        space, colon, _ = label.partition(":")
        # A module that was named with ``-p`` has no name of a plugin yet.
        if plugin is None or not colon or "." in plugin or space in _name_spaces(plugin):
            kept.append(rule)
            continue
        fact = (
            f"the rule {rule.id!r} of plugin {plugin!r} is left out: its label {label!r} is of another plugin"
        )
        remedy = f"begin its label with {_name_spaces(plugin)[0]!r} and a colon"
        refused.append(Diagnostic("plugin.foreign_label", fact, remedy=remedy, where=f"plugin {plugin}"))
    return tuple(kept), tuple(refused)


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
        users = _users(trace)
        names = {trace.kernels[i].name for i in distinct_values(trace.dispatches.kernel).tolist() if i >= 0}
        with_lds |= users
        without |= names - users
    return frozenset(without - with_lds)


def _users(trace: Trace) -> set[str]:
    """Kernels with a launch that has LDS, or of which that is not recorded."""
    shape, kernel = trace.dispatches.shape, trace.dispatches.kernel
    lds = np.append(trace.shapes.lds_bytes, -1)  # index -1: no shape
    rows = (lds[shape] != 0) & (kernel >= 0)
    return {trace.kernels[i].name for i in distinct_values(kernel[rows]).tolist()}
