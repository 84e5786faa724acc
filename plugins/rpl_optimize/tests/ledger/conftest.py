"""Ledgers of made-up sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rpl_optimize.contracts import EvidencePart, PolicyPart
from rpl_optimize.ledger.lines import Ledger
from rpl_optimize.ledger.lines import LedgerEvent as Event
from rpl_optimize.measurement.verdict import judge
from rpl_testkit.pair_model import flawless_evidence

STARTED = {
    "tool_version": "0.1.0",
    "command": ("./app", "7"),
    "source": "app.hip",
    "source_sha256": "1" * 64,
    "proposer": "rules",
    "policy": PolicyPart(),
}
SHA = "2" * 64


def note(text: str) -> dict[str, Any]:
    return {"text": text}


def candidate_events(evidence: EvidencePart, number: int = 1) -> Iterator[tuple[Event, dict[str, Any]]]:
    """What a session writes about one candidate, up to its verdict."""
    proposed = {"kernel": "k", "proposer": "rules", "summary": "unroll by 4", "source_sha256": SHA}
    yield Event.PROPOSED, {"candidate": number, **proposed}
    yield Event.SOURCE_GUARDED, {"candidate": number, "guards": evidence.source_guards}
    if evidence.build is not None:
        yield Event.BUILT, {"candidate": number, "build": evidence.build}
        yield Event.BINARY_GUARDED, {"candidate": number, "guards": evidence.binary_guards}
    if evidence.checks is not None:
        yield Event.EQUIVALENCE_CHECKED, {"candidate": number, "checks": evidence.checks}
    if evidence.measurement is not None:
        measured = {"measurement": evidence.measurement, "architecture_guards": evidence.architecture_guards}
        yield Event.MEASURED, {"candidate": number, **measured}
    if evidence.remeasurement is not None:
        yield Event.REMEASURED, {"candidate": number, "measurement": evidence.remeasurement}
    judged = {"evidence": evidence, "policy": PolicyPart(), "judgement": judge(evidence, PolicyPart())}
    yield Event.JUDGED, {"candidate": number, **judged}


def blank_evidence() -> EvidencePart:
    """Not measured, and recorded without traffic: no verdict."""
    return flawless_evidence().model_copy(update={"architecture_guards": ()})


@pytest.fixture
def write_ledger(tmp_path: Path) -> Callable[..., Path]:
    """``write_ledger([(event, data), ...])``: a ledger that begins a session and goes on so."""

    def write(events: Any, name: str = "ledger.jsonl") -> Path:
        path = tmp_path / name
        with Ledger.create(path) as ledger:
            ledger.append(Event.SESSION_STARTED, STARTED)
            for event, data in events:
                ledger.append(event, data)
        return path

    return write


@pytest.fixture
def notes(write_ledger: Callable[..., Path]) -> Path:
    """Six lines."""
    return write_ledger((Event.NOTE, note(f"note {number}")) for number in range(5))
