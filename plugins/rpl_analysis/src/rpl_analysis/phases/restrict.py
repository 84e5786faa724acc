"""A recording with nothing but the work of one range, for ``--range``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.phases.report import ranges_by_name, rows_in_ranges
from rpl_core.errors import MissingError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rpl_analysis.phases.report import Place
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace

__all__ = ["restricted"]

_SHOWN = 8
_LONGEST = 60
_RECORD = "record with `rpl profile`, without --no-api (rocprofv3 --marker-trace)"
_OTHERWISE = "choose another name; --range '' takes all work"


def restricted(recording: Recording, name: str | None) -> Recording:
    """``recording`` with the work that ranges called ``name`` launched, or all of it without a name.

    Raises ``MissingError`` without such a range, or without a kernel in one. A counter pass without ranges
    can't be restricted, so its counters go.
    """
    if not name:
        return recording
    named = [(trace, ranges_by_name(trace)) for trace in recording.traces]
    timed = [ranges for trace, ranges in named if trace.role is TraceRole.TIMING]
    if not any(name in ranges for ranges in timed):
        raise MissingError(
            f"no timing run holds a range {name[:_LONGEST]!r}{_known(timed)}",
            next_step=f"{_RECORD}, or {_OTHERWISE}",
        )
    kept = tuple(
        _only(trace, ranges[name]) if name in ranges else trace
        for trace, ranges in named
        if name in ranges or trace.role is TraceRole.THREAD_TRACE
    )
    if not any(len(trace.dispatches) for trace in kept if trace.role is TraceRole.TIMING):
        raise MissingError(
            f"no kernel was launched in the ranges called {name[:_LONGEST]!r}",
            cause="the work was launched by another thread, or the kernel trace is missing",
            next_step=_OTHERWISE,
        )
    said = _said(name, len(recording.traces) - len(kept))
    return attrs.evolve(recording, traces=kept, diagnostics=(*recording.diagnostics, *said))


def _known(timed: Iterable[Iterable[str]]) -> str:
    names = dict.fromkeys(name for ranges in timed for name in ranges)
    shown = ", ".join(repr(name[:_LONGEST]) for name in list(names)[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; there are {shown}{more}" if names else ", nor any other"


def _said(name: str, left_out: int) -> tuple[Diagnostic, ...]:
    shown = repr(name[:_LONGEST])
    fact = (
        f"only the work that ranges called {shown} launched is analysed; between them the GPU counts as idle"
    )
    diagnostics = [Diagnostic("phases.restricted", fact, severity=Severity.INFO)]
    if left_out:
        told = f"not used: {counted(left_out, 'pass', 'passes')} without a range {shown}"
        diagnostics.append(
            Diagnostic(
                "phases.passes_left_out", told, remedy="record all passes with rocprofv3 --marker-trace"
            )
        )
    return tuple(diagnostics)


def _only(trace: Trace, ranges: list[Place]) -> Trace:
    rows = rows_in_ranges(trace, ranges, trace.dispatches)
    changes: dict[str, Any] = {"dispatches": _picked(trace.dispatches, rows)}
    if trace.copies is not None:
        changes["copies"] = _picked(trace.copies, rows_in_ranges(trace, ranges, trace.copies))
    if trace.counters is not None:
        place = np.full(len(trace.dispatches), -1, np.int64)
        place[rows] = np.arange(len(rows))
        readings = _picked(trace.counters, np.flatnonzero(place[trace.counters.dispatch] >= 0))
        changes["counters"] = attrs.evolve(readings, dispatch=place[readings.dispatch])
    return attrs.evolve(trace, **changes)


def _picked(columns: Any, rows: NDArray[np.int64]) -> Any:
    return type(columns)(
        **{field.name: getattr(columns, field.name)[rows] for field in attrs.fields(type(columns))}
    )
