"""The modelled times of drawn launches and barriers, against their definition asked record by record.

docs/EMULATOR.md, "Modelled": a launch begins when what was before it in its queue is over, and when all that
had ended when the program submitted it had ended; a barrier is over when its queue and the setters of what it
waits for are.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rpl_core.errors import BadDataError
from rpl_emu.rocpd_file import read_work

Record = dict[str, Any]


def _drawn(rng: random.Random, pid: int) -> list[Record]:
    records: list[Record] = []
    for number in range(40):
        record: Record = {
            "pid": pid,
            "gpu": rng.choice((0, 1)),
            "queue": rng.choice((1, 2, 3)),
            "completes": rng.choice((0, 100 + rng.randint(0, 12))),
        }
        if rng.random() < 0.6:
            bound = rng.choice((0.2, 1.0, 7.4, 7.6, 300.0, 5_000.0))
            done = rng.randint(0, number + 3)
            records.append(
                record | {"kind": "emulated", "done_before": done, "modelled": {"bound_ns": bound}}
            )
        else:
            waits = rng.sample(range(100, 116), rng.randint(1, 3))
            records.append(record | {"kind": "barrier", "waits_for": waits})
    return records


class _Definition:
    """When each record is over, asked for by its number; nothing is kept from one to the next but answers."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.over_ns = cache(self._over_ns)

    def place(self, number: int) -> tuple[int, int]:
        return self.records[number]["gpu"], self.records[number]["queue"]

    def before(self, number: int) -> int:
        """The end of the one before it in its queue."""
        earlier = [i for i in range(number) if self.place(i) == self.place(number)]
        return self.over_ns(earlier[-1]) if earlier else 0

    def begin_ns(self, number: int) -> int:
        known = range(min(self.records[number]["done_before"], number))
        return max([self.before(number), *(self.over_ns(i) for i in known)])

    def setters(self, number: int) -> list[int]:
        """Who set each signal last before this record was met; none where nobody did."""
        found = []
        for signal in self.records[number]["waits_for"]:
            found += [i for i in range(number) if self.records[i]["completes"] == signal][-1:]
        return found

    def launches(self, until: int) -> int:
        return sum(self.records[i]["kind"] == "emulated" for i in range(until))

    def _over_ns(self, number: int) -> int:
        record = self.records[number]
        if record["kind"] == "barrier":
            return max([self.before(number), *(self.over_ns(i) for i in self.setters(number))])
        whole_ns = int(record["modelled"]["bound_ns"] + 0.5)  # no bound here ends in one half
        return self.begin_ns(number) + max(1, whole_ns)


def _log(records: list[Record], path: Path) -> Path:
    lines = [f"{record['kind']} {json.dumps(record)}" for record in records]
    path.write_text("\n".join([*lines[:5], "a line of the program", *lines[5:]]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("seed", range(12))
def test_launches_and_barriers_end_when_their_definition_says(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    of_process = {pid: _drawn(rng, pid) for pid in (7, 11)}
    mixed = [record for pair in zip(*of_process.values(), strict=True) for record in pair]
    found = read_work(_log(mixed, tmp_path / "log"))
    assert list(found) == [7, 11]
    for pid, records in of_process.items():
        expected = _Definition(records)
        launches = [i for i, record in enumerate(records) if record["kind"] == "emulated"]
        assert [(one.queue, one.begin_ns, one.end_ns) for one in found[pid].launches] == [
            (expected.place(i), expected.begin_ns(i), expected.over_ns(i)) for i in launches
        ]
        events = [
            (
                *(expected.place(by), expected.launches(by + 1), expected.over_ns(by)),
                *(expected.place(i), expected.launches(i), expected.over_ns(i)),
            )
            for i, record in enumerate(records)
            if record["kind"] == "barrier"
            for by in expected.setters(i)
            if expected.place(by) != expected.place(i)
        ]
        assert events
        assert [
            (one.source_queue, one.set_after, one.set_ns, one.queue, one.waited_at, one.waited_ns)
            for one in found[pid].events
        ] == events


def test_a_process_without_a_launch_has_no_work_and_a_cut_line_is_named(tmp_path: Path) -> None:
    barrier = {"kind": "barrier", "pid": 3, "gpu": 0, "queue": 1, "completes": 0, "waits_for": []}
    assert read_work(_log([barrier], tmp_path / "log")) == {}
    (tmp_path / "cut").write_text('emulated {"pid": 3, "gp', encoding="utf-8")
    with pytest.raises(BadDataError, match="cut off"):
        read_work(tmp_path / "cut")
