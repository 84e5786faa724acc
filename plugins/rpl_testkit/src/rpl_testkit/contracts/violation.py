"""How a contract check fails, and the checks that all kinds share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any

from rpl_core.plugins.kinds import KINDS

if TYPE_CHECKING:
    from rpl_core.plugins.kinds import ContributionKind


class ContractViolation(AssertionError):  # noqa: N818 - it is an assertion about someone's code
    """A contribution breaks a rule of its kind; the message names contribution and rule."""


def demand(holds: bool, subject: str, rule: str) -> None:
    """Raise ``ContractViolation`` unless ``holds``."""
    if not holds:
        raise ContractViolation(f"{subject}: {rule}")


def assert_contribution(hook: str, item: Any) -> None:
    """What the host checks of everything that ``hook`` returns, whichever distribution owns the hook."""
    demand_kind(hook, item)


def _kinds() -> Iterator[ContributionKind[Any]]:
    yield from KINDS
    for entry in metadata.entry_points(group="rpl.hookspecs"):
        yield from entry.load().KINDS


def demand_kind(hook: str, item: Any) -> str:
    """As ``assert_contribution``; returns "Kind name" for messages."""
    kind = next((kind for kind in _kinds() if kind.hook == hook), None)
    if kind is None:
        raise ContractViolation(f"{hook}: no installed distribution has this hook")
    violation = kind.violation(item)
    demand(violation is None, kind.title, violation or "")
    for attribute in kind.required_text:
        text = getattr(item, attribute)
        demand(
            bool(text.strip()) and text.isprintable(),
            f"{kind.title} {kind.identity_of(item)}",
            f"{attribute} must be one non-empty line, found {text!r}",
        )
    return f"{kind.title} {kind.identity_of(item)}"


def demand_positive(value: float, subject: str, what: str) -> None:
    """A finite number above zero."""
    finite = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    demand(finite and value > 0, subject, f"{what} must be a number above 0, found {value!r}")


def demand_reason_or_none(value: object, subject: str) -> None:
    """What ``missing()`` may return."""
    demand(
        value is None or (isinstance(value, str) and bool(value.strip())),
        subject,
        f"missing() must return None or a sentence, found {value!r}",
    )
