"""What every trace must satisfy: columns of one length, indices that point somewhere, rows in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rpl_testkit.contracts.violation import demand

if TYPE_CHECKING:
    from rpl_core.model.trace import Trace


def check_trace(trace: Trace, subject: str) -> None:
    """Check the inner consistency of one trace."""
    sizes = {
        "process": len(trace.processes),
        "agent": len(trace.agents),
        "source_agent": len(trace.agents),
        "destination_agent": len(trace.agents),
        "kernel": len(trace.kernels),
        "stream": len(trace.streams),
        "queue": len(trace.queues),
        "shape": len(trace.shapes),
        "direction": len(trace.copy_directions),
        "function": len(trace.api_functions),
        "counter": len(trace.counter_names),
        "dispatch": len(trace.dispatches),
    }
    tables = (trace.dispatches, trace.copies, trace.api_calls, trace.counters)
    for table in (table for table in tables if table is not None):
        _check_table(table, sizes, f"{subject}, {type(table).__name__}")
    _check_order(trace, f"{subject}, Dispatches")


def _check_table(table: Any, sizes: dict[str, int], subject: str) -> None:
    for field in attrs.fields(type(table)):
        column = getattr(table, field.name)
        demand(
            column.ndim == 1 and len(column) == len(table), subject, f"column {field.name} has another length"
        )
        if field.name in sizes and len(column):
            low, high = int(column.min()), int(column.max())
            inside = low >= -1 and high < sizes[field.name]
            demand(inside, subject, f"column {field.name} points to {low}..{high} of {sizes[field.name]}")


def _check_order(trace: Trace, subject: str) -> None:
    import numpy as np

    rows = trace.dispatches
    order = np.lexsort((rows.dispatch_id, rows.process, rows.end_ns, rows.begin_ns))
    demand(bool((order == np.arange(len(rows))).all()), subject, "rows are not in the order of their begin")
