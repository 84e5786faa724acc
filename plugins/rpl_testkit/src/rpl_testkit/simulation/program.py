"""Host programs as data: what each thread calls, one step after the other.

Streams and events are numbered by the program; stream 0 is the legacy null stream, which exists from the
start. Times are ns.
"""

from __future__ import annotations

from typing import Literal

from rpl_core.values import frozen

__all__ = ["Costs", "HostThread", "Kind", "Step"]

Kind = Literal[
    "launch",
    "copy",
    "record",
    "wait",
    "sync_stream",
    "sync_event",
    "sync_device",
    "create_stream",
    "destroy_stream",
    "destroy_event",
    # No calls, so that no recording shows them: the thread computes, tells others, waits until it is told.
    "think",
    "tell",
    "listen",
]


@frozen
class Step:
    """``before_ns`` and ``after_ns``: time inside the call until it takes effect, and from then on.

    ``duration_ns`` is that of the work, or of thinking; ``event`` is also the number of what is told.
    """

    kind: Kind
    stream: int = 0
    event: int = 0
    name: str = ""
    duration_ns: int = 0
    non_blocking: bool = False
    before_ns: int = 100
    after_ns: int = 100


HostThread = tuple[Step, ...]


@frozen
class Costs:
    """What the machine adds: between two calls of a thread, from ready to begin of work, to come back."""

    between_calls_ns: int = 100
    begin_ns: int = 2_000
    return_ns: int = 1_000
