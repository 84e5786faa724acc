"""The contract of a metric: it is of devices that it names, and runs the user's command as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.options import Options
from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from rpl_optimize.interfaces.metric import Metric

_COMMAND = ("./app", "--size", "3 4")


def assert_metric(metric: Metric) -> None:
    """Without running anything: what it says of itself, and the words that it would run."""
    subject = demand_kind("rpl_metrics", metric)
    demand(bool(metric.devices), subject, "a metric names the devices that it is for")
    for what in ("unit", "formula", "architecture"):
        demand(bool(str(getattr(metric, what)).strip()), subject, f"a metric says its {what}")
    words = metric.command(_COMMAND, Options())
    demand(words[-len(_COMMAND) :] == _COMMAND, subject, "command() ends with the user's own words")
