"""What a plugin can contribute to the analyses of rpl-analysis, as data."""

from __future__ import annotations

import re
import sys
from enum import Enum
from importlib import resources
from typing import Any

import attrs

from rpl_core.values import frozen

#: What a label of a plugin looks like: its own name, a colon, the label.
_OF_PLUGIN = re.compile(r"[a-z0-9][a-z0-9_-]*:[a-z0-9_]+")


class BottleneckLabel(str, Enum):
    """The frozen label identifiers of ``analysis.json``. Plugins add labels such as ``"myplugin:label"``."""

    MEMORY_BANDWIDTH_BOUND = "memory_bandwidth_bound"
    LATENCY_BOUND = "latency_bound"
    UNDER_OCCUPIED = "under_occupied"
    DIVERGENCE_LIMITED = "divergence_limited"
    COMPUTE_THROUGHPUT_LIMITED = "compute_throughput_limited"
    UNCLASSIFIED = "unclassified"


def label_name(label: BottleneckLabel | str) -> str:
    """The identifier as documents hold it."""
    return label.value if isinstance(label, BottleneckLabel) else label


def _label(value: BottleneckLabel | str) -> BottleneckLabel | str:
    """One of the frozen labels as its member; others as they are."""
    try:
        return BottleneckLabel(value)
    except ValueError:
        return value


def _is_label(value: object) -> bool:
    return isinstance(value, BottleneckLabel) or (
        isinstance(value, str) and bool(_OF_PLUGIN.fullmatch(value))
    )


class Comparison(str, Enum):
    AT_LEAST = ">="
    BELOW = "<"


@frozen
class Condition:
    """``quantity comparison threshold``; ``source`` cites the threshold or is the word "chosen"."""

    quantity: str
    comparison: Comparison
    threshold: float
    source: str

    def holds(self, value: float) -> bool:
        if self.comparison is Comparison.AT_LEAST:
            return value >= self.threshold
        return value < self.threshold


@frozen
class Rule:
    """All ``conditions`` must hold. Rules apply in the order of (-priority, plugin, id); the first wins.

    ``corroborates`` names a rule of the same label that looks at the same limit by a figure that is more
    often known. Where that rule was decided, this one being untestable costs one step of confidence only.

    A rule that can't be tested for lack of a figure is named among the unknown and changes nothing else,
    unless it is ``required``: then weaker labels are less sure of themselves.
    """

    id: str
    label: BottleneckLabel | str = attrs.field(converter=_label)
    priority: int
    conditions: tuple[Condition, ...] = attrs.field()
    explanation: str
    corroborates: str | None = None
    required: bool = False

    @label.validator
    def _known_or_namespaced(self, _attribute: object, value: BottleneckLabel | str) -> None:
        if not _is_label(value):
            raise ValueError(f"the label {value!r} is neither one of the frozen ones nor plugin:label")

    @conditions.validator
    def _has_conditions(self, _attribute: object, value: tuple[Condition, ...]) -> None:
        if not value:
            raise ValueError("a rule needs conditions, or it would always win")
        if any(isinstance(condition, Condition) and type(condition) is not Condition for condition in value):
            raise ValueError("conditions are of the class Condition, and of none made from it")


class AdviceState(str, Enum):
    """What a recording lacks where no label could be given."""

    NO_DEVICE = "no_device"
    UNKNOWN_DEVICE = "unknown_device"  # it is recorded, but no installed plugin knows it
    NO_COUNTERS = "no_counters"
    MODELLED = "modelled"  # no counters either, and no hardware that could give them
    COUNTERS = "counters"  # there are some, and rules stayed open all the same


@frozen
class Advice:
    """What to do next about a label, or about time of the application that no kernel takes.

    It is given for kernels with one of ``labels``, if ``rules`` are named only where one of them holds, and
    if all ``conditions`` hold. With a ``state`` it is for kernels that lack that. The label "application"
    goes with a ``figure``: a share of the makespan, such as "host_idle", from 5 % on. The figure
    "unknown_order" is for gains that are wide ranges, "plugin_label" for labels that no other advice knows.

    ``confirm`` names quantities that would tell whether the step is right; ``confirm_unknown`` stands for
    those that no rule could be tested without. ``command`` is what to run, with ``{command}`` for the user's
    own; without it the counters of ``confirm`` are asked for. ``source`` can be opened by a reader.
    """

    id: str
    labels: tuple[str, ...] = attrs.field()
    text: str
    source: str
    rules: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    confirm: tuple[str, ...] = ()
    confirm_unknown: bool = False
    command: str | None = None
    state: AdviceState | None = None
    figure: str | None = None

    @labels.validator
    def _known_labels(self, _attribute: object, value: tuple[str, ...]) -> None:
        for label in value if isinstance(value, tuple) else ():
            if label != "application" and not _is_label(_label(label)):
                raise ValueError(f"the label {label!r} is neither one of the frozen ones nor plugin:label")


class CollectiveWait(str, Enum):
    """Who waits for whom in a collective operation."""

    ALL = "all"  # no rank gets past it before every rank has come
    UNKNOWN = "unknown"  # the name does not say what the kernel does


@frozen
class CollectiveRule:
    """Kernels whose name holds ``pattern`` communicate between GPUs.

    ``pattern`` is a regular expression, searched without regard to case in the name of the function: what
    stands before its template arguments and parameters. The first rule in plugin order that matches counts.
    ``source`` says where the name comes from.
    """

    id: str
    pattern: str = attrs.field()
    operation: str  # "all_reduce", "all_gather", ...; "unknown" where the name does not tell
    waits: CollectiveWait
    source: str

    @pattern.validator
    def _compiles(self, _attribute: object, value: str) -> None:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(
                f"the pattern {value!r} of {self.id!r} is no regular expression: {error}"
            ) from None


# Rules that a distribution ships as TOML beside its modules.

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def packaged_rules(package: str | None, name: str) -> list[dict[str, Any]]:
    """The tables ``[[rule]]`` of the file ``name`` in ``package``, which is part of the installation."""
    text = resources.files(package or __name__).joinpath(name).read_text(encoding="utf-8")
    rules: list[dict[str, Any]] = tomllib.loads(text)["rule"]
    return rules
