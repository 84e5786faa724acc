"""The events of a ledger and the contract of each one's data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from rpl_optimize.contracts import ledger as data

if TYPE_CHECKING:
    from rpl_core.contracts.common import Part


class LedgerEvent(str, Enum):
    """In the order in which a session meets them first."""

    SESSION_STARTED = "session_started"
    RESUMED = "resumed"
    BASELINE_PROFILED = "baseline_profiled"
    TARGET_CHOSEN = "target_chosen"
    PROPOSED = "proposed"
    SOURCE_GUARDED = "source_guarded"
    BUILT = "built"
    BINARY_GUARDED = "binary_guarded"
    EQUIVALENCE_CHECKED = "equivalence_checked"
    CONTINUED = "continued"
    PLANNED = "planned"
    TIMED_ALONE = "timed_alone"
    MEASURED = "measured"
    REMEASURED = "remeasured"
    PLACED = "placed"
    MODELLED = "modelled"
    JUDGED = "judged"
    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"
    WRITTEN = "written"
    FINISHED = "finished"
    RECOVERED = "recovered"
    NOTE = "note"


#: What ``data`` of each event holds.
CONTRACTS: Mapping[LedgerEvent, type[Part]] = {
    LedgerEvent.SESSION_STARTED: data.SessionStartedData,
    LedgerEvent.RESUMED: data.ResumedData,
    LedgerEvent.BASELINE_PROFILED: data.BaselineProfiledData,
    LedgerEvent.TARGET_CHOSEN: data.TargetChosenData,
    LedgerEvent.PROPOSED: data.ProposedData,
    LedgerEvent.SOURCE_GUARDED: data.GuardedData,
    LedgerEvent.BUILT: data.BuiltData,
    LedgerEvent.BINARY_GUARDED: data.GuardedData,
    LedgerEvent.EQUIVALENCE_CHECKED: data.CheckedData,
    LedgerEvent.CONTINUED: data.ContinuedData,
    LedgerEvent.PLANNED: data.PlannedData,
    LedgerEvent.TIMED_ALONE: data.MeasuredData,
    LedgerEvent.MEASURED: data.MeasuredData,
    LedgerEvent.REMEASURED: data.MeasuredData,
    LedgerEvent.PLACED: data.PlacementData,
    LedgerEvent.MODELLED: data.ModelledData,
    LedgerEvent.JUDGED: data.JudgedData,
    LedgerEvent.ACCEPTED: data.AcceptedData,
    LedgerEvent.ROLLED_BACK: data.RolledBackData,
    LedgerEvent.WRITTEN: data.WrittenData,
    LedgerEvent.FINISHED: data.FinishedData,
    LedgerEvent.RECOVERED: data.RecoveredData,
    LedgerEvent.NOTE: data.NoteData,
}
