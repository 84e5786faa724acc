"""A recording with nothing but the work of one range, for ``--range``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.phases.report import ranges_by_name, rows_in_ranges
from rpl_core.errors import MissingError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace

__all__ = ["restricted"]

_SHOWN = 8


def restricted(recording: Recording, name: str) -> Recording:
    """``recording`` with the work that ranges called ``name`` launched. Raises ``MissingError`` without any.

    A counter pass without ranges can't be restricted, so its counters go.
    """
    runs = [trace for trace in recording.timing_runs if name in ranges_by_name(trace)]
    if not runs:
        raise MissingError(
            f"no timing run holds a range {name!r}{_known(recording)}",
            next_step="record with rocprofv3 --marker-trace, or choose another name",
        )
    kept = [trace for trace in recording.traces if _usable(trace, name)]
    return attrs.evolve(
        recording,
        traces=tuple(_only(trace, name) for trace in kept),
        diagnostics=(*recording.diagnostics, *_said(name, len(recording.traces) - len(kept))),
    )


def _known(recording: Recording) -> str:
    names = dict.fromkeys(name for trace in recording.timing_runs for name in ranges_by_name(trace))
    shown = ", ".join(repr(name[:60]) for name in list(names)[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; there are {shown}{more}" if names else ", nor any other"


def _usable(trace: Trace, name: str) -> bool:
    return trace.role is TraceRole.THREAD_TRACE or name in ranges_by_name(trace)


def _said(name: str, left_out: int) -> tuple[Diagnostic, ...]:
    fact = (
        f"only the work that ranges called {name!r} launched is analysed; between them the GPU counts as idle"
    )
    found = [Diagnostic("phases.restricted", fact, severity=Severity.INFO)]
    if left_out:
        told = f"{left_out} passes hold no range {name!r} and are not used"
        found.append(
            Diagnostic("phases.passes_left_out", told, remedy="record all passes with --marker-trace")
        )
    return tuple(found)


def _only(trace: Trace, name: str) -> Trace:
    rows = rows_in_ranges(trace, name, trace.dispatches)
    if rows is None:
        return trace
    changes: dict[str, Any] = {"dispatches": _picked(trace.dispatches, rows)}
    if trace.copies is not None:
        copied = rows_in_ranges(trace, name, trace.copies)
        changes["copies"] = _picked(trace.copies, copied)
    if trace.counters is not None:
        place = np.full(len(trace.dispatches), -1, np.int64)
        place[rows] = np.arange(len(rows))
        readings = _picked(trace.counters, np.flatnonzero(place[trace.counters.dispatch] >= 0))
        changes["counters"] = attrs.evolve(readings, dispatch=place[readings.dispatch])
    return attrs.evolve(trace, **changes)


def _picked(columns: Any, rows: NDArray[np.int64] | None) -> Any:
    return type(columns)(
        **{field.name: getattr(columns, field.name)[rows] for field in attrs.fields(type(columns))}
    )
