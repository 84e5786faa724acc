"""A ledger's events in words."""

from __future__ import annotations

from rpl_optimize.cli.ledger import summary_of
from rpl_optimize.ledger.lines import FIRST_PREVIOUS, LedgerEvent, make_entry


def words(event, **data):
    return summary_of(make_entry(1, "2026-11-21T10:00:00Z", event, data, FIRST_PREVIOUS))


def test_figures_are_short_enough_to_look_at():
    gains = {"measured_gain": 0.09429695605709645, "predicted_gain": 0.1, "kernel_gain": None}
    assert words(LedgerEvent.ACCEPTED, **gains) == "measured gain 0.0943, predicted gain 0.1"
    build = {"binary": "candidates/001/build/app", "wall_s": 3.118533169999864}
    assert words(LedgerEvent.BUILT, build=build) == "candidates/001/build/app in 3.12 s"


def test_what_a_foreign_ledger_lacks_is_not_invented():
    assert words(LedgerEvent.BUILT) == "None in None s"
    assert "unknown" in words(LedgerEvent.MEASURED, measurement={"look": {"decision": "accepted"}})
