"""Ranges that an application marked on its own time line; readers leave them in ``Trace.extras[RANGES]``."""

from __future__ import annotations

from typing import Final

from rpl_core.values import frozen

RANGES: Final = "ranges"


@frozen
class HostRange:
    """``guid`` and ``pid`` name the process; ``thread_id`` is -1 for a range of the whole process."""

    name: str
    guid: str
    pid: int
    thread_id: int
    begin_ns: int
    end_ns: int
