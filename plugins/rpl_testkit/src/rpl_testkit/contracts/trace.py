"""What every trace must satisfy: columns of one length, indices that point somewhere, rows in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import demand

if TYPE_CHECKING:
    from rpl_core.model.trace import Trace


def check_trace(trace: Trace, subject: str) -> None:
    """Check the inner consistency of one trace, and the order of its rows."""
    from rpl_core.model.soundness import require_sound

    try:
        require_sound(trace)
    except (TypeError, ValueError) as error:
        demand(False, subject, str(error))
    _check_order(trace, f"{subject}, Dispatches")


def _check_order(trace: Trace, subject: str) -> None:
    import numpy as np

    rows = trace.dispatches
    order = np.lexsort((rows.dispatch_id, rows.process, rows.end_ns, rows.begin_ns))
    demand(bool((order == np.arange(len(rows))).all()), subject, "rows are not in the order of their begin")
