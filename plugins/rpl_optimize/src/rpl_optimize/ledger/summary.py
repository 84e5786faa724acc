"""One line for people about each event of a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rpl_core.text.safety import shorten
from rpl_optimize.ledger.events import LedgerEvent
from rpl_optimize.ledger.line import LedgerEntry

_LONGEST = 100


def summary_of(entry: LedgerEntry) -> str:
    """What happened. The data may come from elsewhere: whatever is missing or odd is left out."""
    return shorten(" ".join(_words(entry.event, entry.data).split()), _LONGEST)


def candidate_of(entry: LedgerEntry) -> str:
    number = entry.data.get("candidate")
    return str(number) if isinstance(number, int) else ""


def _words(event: LedgerEvent, data: Mapping[str, Any]) -> str:
    if event is LedgerEvent.JUDGED:
        judgement = _part(data, "judgement")
        return f"{judgement.get('verdict')} at {judgement.get('stage')}: {judgement.get('reason')}"
    if event in (LedgerEvent.SOURCE_GUARDED, LedgerEvent.BINARY_GUARDED):
        return _guards(data)
    if event in (LedgerEvent.TIMED_ALONE, LedgerEvent.MEASURED, LedgerEvent.REMEASURED):
        return _times(_part(data, "measurement"))
    if event is LedgerEvent.MODELLED:
        return _figures(_part(data, "modelled"))
    if event is LedgerEvent.PLACED:
        return _placement(_part(data, "placement"))
    if event is LedgerEvent.EQUIVALENCE_CHECKED:
        checks = [c for c in _list(data, "checks") if isinstance(c, dict)]
        return ", ".join(f"{c.get('check')}: {c.get('verdict')}" for c in checks) or "no check"
    if event is LedgerEvent.BUILT:
        build = _part(data, "build")
        return str(build.get("problem") or f"{build.get('binary')} in {_short(build.get('wall_s'))} s")
    names = _SHOWN.get(event, ())
    return ", ".join(f"{_spaced(name)} {_short(data[name])}" for name in names if data.get(name) is not None)


_SHOWN: Mapping[LedgerEvent, tuple[str, ...]] = {
    LedgerEvent.SESSION_STARTED: ("source", "proposer", "tool_version"),
    LedgerEvent.RESUMED: ("tool_version",),
    LedgerEvent.BASELINE_PROFILED: ("number", "directory", "runs", "origin"),
    LedgerEvent.TARGET_CHOSEN: ("kernel", "reason"),
    LedgerEvent.PROPOSED: ("kernel", "proposer", "summary"),
    LedgerEvent.CONTINUED: ("under_way", "pairs", "repeated_pairs", "padding_bytes", "directory"),
    LedgerEvent.PLANNED: ("stage", "most_runs", "run_s", "padding_bytes", "seed"),
    LedgerEvent.ACCEPTED: ("measured_gain", "predicted_gain", "kernel_gain"),
    LedgerEvent.ROLLED_BACK: ("verdict", "reason"),
    LedgerEvent.WRITTEN: ("path", "backup"),
    LedgerEvent.FINISHED: ("termination_reason", "verdict", "termination_detail"),
    LedgerEvent.RECOVERED: ("dropped_bytes",),
    LedgerEvent.NOTE: ("text",),
}


def _guards(data: Mapping[str, Any]) -> str:
    guards = [g for g in _list(data, "guards") if isinstance(g, dict)]
    refusing = [f"{g.get('guard')}: {g.get('reason')}" for g in guards if g.get("passed") is not True]
    return "; ".join(refusing) or f"{len(guards)} passed"


def _times(part: Mapping[str, Any]) -> str:
    if part.get("problem") is not None:
        return str(part["problem"])
    look = _part(part, "look")
    ratio = look.get("ratio")
    shown = f"{ratio:.4f}" if isinstance(ratio, float) else "unknown"
    return f"{look.get('decision')} after {look.get('pairs')} pairs, new / base {shown}"


def _figures(part: Mapping[str, Any]) -> str:
    if part.get("problem") is not None:
        return str(part["problem"])
    return f"{_short(part.get('base'))} to {_short(part.get('new'))} {part.get('unit')} (modelled)"


def _placement(part: Mapping[str, Any]) -> str:
    if part.get("problem") is not None:
        return str(part["problem"])
    shifts = [shift for shift in _list(part, "shifts") if isinstance(shift, dict)]
    told = (f"+{shift.get('padding_bytes')} bytes: {_times(_part(shift, 'measurement'))}" for shift in shifts)
    return "; ".join(told)


def _short(value: object) -> str:
    """Three digits are enough to look at; the ledger holds them all."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    return value if isinstance(value, list) else []
