"""The checks, in the order in which they are made; what is left behind is looked for last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_selftest.check import Check


def all_checks() -> tuple[Check, ...]:
    from rpl_selftest.checks.candidates import CANDIDATES
    from rpl_selftest.checks.counting import COUNTING
    from rpl_selftest.checks.machine import BEFORE, LEFT_BEHIND, REPLAYING
    from rpl_selftest.checks.timing import SAMPLING, TIMING

    return (*BEFORE, *TIMING, *COUNTING, *REPLAYING, *SAMPLING, *CANDIDATES, *LEFT_BEHIND)
