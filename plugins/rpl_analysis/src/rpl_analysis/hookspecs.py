"""The hooks of the analyses; the core finds them by the entry point ``rpl.hookspecs``.

The rules of ``rpl_core.hookspecs`` hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.hookspecs import hookspec
from rpl_core.plugins.catalog import ContributionKind

if TYPE_CHECKING:
    from rpl_analysis.interfaces import Advice, CollectiveRule, Rule
    from rpl_core.model.device import DeviceModel

__all__ = ["ADVICE", "COLLECTIVE_RULES", "KINDS", "RULES"]


@hookspec
def rpl_classifier_rules(device: DeviceModel | None, config: Mapping[str, Any]) -> tuple[Rule, ...] | None:
    """Offer rules for the bottleneck label.

    Called once per analysis.

    :param device: the device that the recording was made on, or ``None`` when it is unknown.
    :return: rules; all are evaluated, so that near-misses can be shown.

    Order: priority (highest first), plugin name, rule id. Isolation: per plugin.
    """


@hookspec
def rpl_collective_rules(config: Mapping[str, Any]) -> tuple[CollectiveRule, ...] | None:
    """Say which kernels communicate between GPUs, by their names.

    Called when a run is analysed.

    :return: rules with unique ids.

    Order: plugin name, then as returned; the first rule that matches counts. Isolation: per rule.
    """


@hookspec
def rpl_advice(config: Mapping[str, Any]) -> tuple[Advice, ...] | None:
    """Say what to do next about a label, or about time that no kernel takes.

    Called when a run is analysed.

    :return: advice with unique ids.

    Order: plugin name, then as returned; the first three that hold are given. Isolation: per advice.
    """


RULES: ContributionKind[Rule] = ContributionKind(
    "rpl_classifier_rules",
    "rule",
    ("rpl_analysis.interfaces:Rule",),
    identity="id",
    required_text=("explanation",),
    numbers=("priority",),
    asked=("device",),
)

COLLECTIVE_RULES: ContributionKind[CollectiveRule] = ContributionKind(
    "rpl_collective_rules",
    "collective rule",
    ("rpl_analysis.interfaces:CollectiveRule",),
    identity="id",
    required_text=("pattern", "operation", "source"),
)

ADVICE: ContributionKind[Advice] = ContributionKind(
    "rpl_advice",
    "advice",
    ("rpl_analysis.interfaces:Advice",),
    identity="id",
    required_text=("text", "source"),
)

KINDS: tuple[ContributionKind[Any], ...] = (RULES, COLLECTIVE_RULES, ADVICE)
