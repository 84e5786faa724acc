"""How figures look in a prompt: with unit, exactness and origin; what is missing says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import number
from rpl_llm_unroll.prompt.quoting import sentence

if TYPE_CHECKING:
    from rpl_core.contracts.common import MetricDoc

NOT_COLLECTED = "not collected"
_LONGEST_VALUE = 2000
_MARKS = {"lower_bound": "at least ", "interval": "between ", "estimate": "about "}


def metric(part: MetricDoc, unit: str | None = None) -> str:
    """For example ``about 12.5 GB/s (measured, estimate)``."""
    if part.value is None:
        return missing(part.reason)
    mark = _MARKS.get(part.exactness or "", "")
    value = number(part.value)
    if part.exactness == "interval" and part.upper is not None:
        value += f" and {number(part.upper)}"
    labels = [text for text in (part.origin, part.exactness) if text and text != "exact"]
    shown = f"{mark}{value} {part.unit if unit is None else unit}".rstrip()
    return f"{shown} ({', '.join(labels)})" if labels else shown


def missing(reason: str | None) -> str:
    return f"{NOT_COLLECTED}: {sentence(reason)}" if reason else NOT_COLLECTED


def known(value: object, unit: str = "") -> str:
    """A plain value with its unit, or that it was not collected."""
    if value is None:
        return NOT_COLLECTED
    text = number(value) if isinstance(value, float) else str(value)
    return f"{text} {unit}".rstrip()


def bullets(rows: list[tuple[str, str]]) -> str:
    """One line per row, whatever the names and values of others hold."""
    return "\n".join(f"- {sentence(name)}: {sentence(value, _LONGEST_VALUE)}" for name, value in rows)
