"""What the software KFD wrote down of a program's launches, laid out in time by what is modelled.

Emulation takes a time that says nothing about a GPU, so it is nowhere used. A launch
takes its modelled bound (docs/EMULATOR.md, "Modelled"). It begins when the launch before it in its queue has
ended, what barrier packets before it wait for, and what had ended when the program submitted it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rpl_core.errors import BadDataError
from rpl_core.values import frozen

_LAUNCH, _BARRIER = "emulated ", "barrier "


@frozen(eq=False)
class EmulatedLaunch:
    """One launch with its place in the modelled order; times in ns from the first one's begin."""

    facts: Mapping[str, Any]
    begin_ns: int
    end_ns: int

    @property
    def queue(self) -> tuple[int, int]:
        return self.facts["gpu"], self.facts["queue"]


@frozen
class QueueEvent:
    """A barrier packet of ``queue`` that held back what follows until ``source_queue`` had set a signal.

    ``set_after`` and ``waited_at`` say how many launches of the process had ended by then.
    """

    source_queue: tuple[int, int]
    set_after: int
    set_ns: int
    queue: tuple[int, int]
    waited_at: int
    waited_ns: int


@frozen(eq=False)
class EmulatedWork:
    """What one process did: launches in the order in which they ended, and what ordered its queues."""

    launches: Sequence[EmulatedLaunch]
    events: Sequence[QueueEvent]


def read_work(log: Path) -> dict[int, EmulatedWork]:
    """The work of each process that launched something, by its id."""
    clocks: dict[int, _Clock] = {}
    with log.open(encoding="utf-8") as lines:
        for kind, facts in _records(lines, log):
            clock = clocks.setdefault(facts["pid"], _Clock())
            if kind == _LAUNCH:
                clock.launch(facts)
            else:
                clock.barrier(facts)
    return {
        pid: EmulatedWork(clock.launches, clock.events)
        for pid, clock in sorted(clocks.items())
        if clock.launches
    }


def _records(lines: Iterable[str], log: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    for line in lines:
        kind = next((kind for kind in (_LAUNCH, _BARRIER) if line.startswith(kind)), None)
        if kind is None:
            continue
        try:
            yield kind, json.loads(line.removeprefix(kind))
        except ValueError:
            raise BadDataError(
                f"{log} holds a line that was cut off", next_step="run the program again"
            ) from None


@frozen
class _Set:
    """A signal that was set: by whom, behind which launch of the process, and when."""

    queue: tuple[int, int]
    after: int
    at_ns: int


class _Clock:
    """The modelled time of one process: when each queue is free, each signal set, each logged record done."""

    def __init__(self) -> None:
        self.launches: list[EmulatedLaunch] = []
        self.events: list[QueueEvent] = []
        self._queues: dict[tuple[int, int], int] = {}
        self._signals: dict[int, _Set] = {}
        #: By number of records: when the last of them had ended.
        self._done = [0]

    def launch(self, facts: dict[str, Any]) -> None:
        queue = facts["gpu"], facts["queue"]
        # The program can have waited for no more than what had ended when the packet was found.
        begin = max(self._queues.get(queue, 0), self._done[min(facts["done_before"], len(self._done) - 1)])
        end = begin + max(1, round(facts["modelled"]["bound_ns"]))
        self.launches.append(EmulatedLaunch(facts, begin, end))
        self._finish(queue, facts["completes"], end)

    def barrier(self, facts: dict[str, Any]) -> None:
        queue = facts["gpu"], facts["queue"]
        # What nobody is known to have set was set by copies, by the host, or before the first launch.
        waits = [self._signals[signal] for signal in facts["waits_for"] if signal in self._signals]
        end = max([self._queues.get(queue, 0), *(one.at_ns for one in waits)])
        self.events += (
            QueueEvent(one.queue, one.after, one.at_ns, queue, len(self.launches), end)
            for one in waits
            if one.queue != queue
        )
        self._finish(queue, facts["completes"], end)

    def _finish(self, queue: tuple[int, int], signal: int, end: int) -> None:
        self._queues[queue] = end
        if signal:
            self._signals[signal] = _Set(queue, len(self.launches), end)
        self._done.append(max(self._done[-1], end))
