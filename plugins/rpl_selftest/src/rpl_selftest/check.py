"""What a check is and how it can end. The checks stand in ``checks``, what they use in ``bench``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_selftest.bench import Bench


class Outcome(str, Enum):
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_POSSIBLE = "not possible"


class NotPossibleError(Exception):
    """A check can't be made here: one line that says why."""


@frozen
class Finding:
    """``found`` says what was seen, or why nothing could be. ``figures`` are the numbers behind it."""

    outcome: Outcome
    found: str
    figures: Mapping[str, float | None] = attrs.field(factory=dict)


@frozen
class Check:
    """One line of the self-test.

    ``runs`` says what is executed, ``expectation`` what must come of it, with its tolerance, and ``document``
    which page of rpl is wrong where it does not. An ``essential`` check that is not possible leaves the whole
    without a verdict. ``only_full`` ones take minutes.
    """

    name: str
    runs: str
    expectation: str
    document: str
    find: Callable[[Bench], Finding]
    essential: bool = True
    only_full: bool = False


def judged(holds: bool, found: str, **figures: float | None) -> Finding:
    return Finding(Outcome.CONFIRMED if holds else Outcome.REFUTED, found, figures)
