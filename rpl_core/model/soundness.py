"""Whether a trace of a reader is sound: types, lengths, indices, times, before anything relies on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import Trace
from rpl_core.model.value_checks import value_violation

if TYPE_CHECKING:
    from numpy.typing import NDArray


def require_sound(trace: object, *, trusted: bool = False) -> None:
    """Raise ``TypeError`` or ``ValueError`` with the first problem; what ``Trace`` documents must hold.

    A recording is data from outside, so lengths, indices and times are looked at whoever read it; types only
    where the reader is not ``trusted``.
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"read gave {type(trace).__name__} where a Trace was expected")
    problem = None if trusted else value_violation(trace)
    if problem is not None:
        raise TypeError(f"Trace: {problem}")
    for problem in problems_of(trace):
        raise ValueError(f"Trace: {problem}")
    names = (*(kernel.name for kernel in trace.kernels), *trace.api_functions, *trace.counter_names)
    "".join(names).encode()  # UnicodeEncodeError is a ValueError


def protect(trace: Trace) -> None:
    """Make the columns read-only, as everybody shares them."""
    for table in (getattr(trace, field.name) for field in attrs.fields(Trace)):
        if attrs.has(type(table)):
            for field in attrs.fields(type(table)):
                column = getattr(table, field.name)
                if isinstance(column, np.ndarray):
                    column.flags.writeable = False


def problems_of(trace: Trace) -> Iterator[str]:
    """Columns of different lengths, indices that point nowhere, times that no clock shows."""
    sizes = _sizes(trace)
    for name in ("dispatches", "copies", "api_calls", "device_events", "counters", "shapes"):
        table = getattr(trace, name, None)
        if table is None:
            continue
        columns = {field.name: getattr(table, field.name) for field in attrs.fields(type(table))}
        if len({len(column) for column in columns.values()}) > 1:
            yield f"the columns of {name} have different lengths"
        for column, size in sizes.items():
            if column in columns and _outside(columns[column], size):
                yield f"{name}.{column} points outside of the {size} there are"
        if "begin_ns" in columns and bool(np.any(columns["end_ns"] < columns["begin_ns"])):
            yield f"{name} has rows that end before they begin"
    if bool(np.any(np.diff(trace.dispatches.begin_ns) < 0)):
        yield "dispatches are not in the order of their begin"


def _sizes(trace: Trace) -> Mapping[str, int]:
    """How many things an index column of this name may point to."""
    return {
        "process": len(trace.processes),
        "agent": len(trace.agents),
        "source_agent": len(trace.agents),
        "destination_agent": len(trace.agents),
        "kernel": len(trace.kernels),
        "stream": len(trace.streams),
        "queue": len(trace.queues),
        "source_queue": len(trace.queues),
        "shape": len(trace.shapes),
        "direction": len(trace.copy_directions),
        "function": len(trace.api_functions),
        "counter": len(trace.counter_names),
        "dispatch": len(trace.dispatches),
    }


def _outside(column: NDArray[Any], size: int) -> bool:
    """Whether an index is neither in ``range(size)`` nor -1."""
    return bool(column.size) and (int(np.min(column)) < -1 or int(np.max(column)) >= size)
