"""Real processes to watch, and asking the kernel whether they are gone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest


def state_of(pid: int) -> str | None:
    """The kernel's state letter of a process, or ``None`` when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


class Processes:
    """Asserts about process ids that a test's children printed."""

    @staticmethod
    def runs(pid: int) -> bool:
        return state_of(pid) not in (None, "Z", "X")

    def assert_gone(self, pids: list[int]) -> None:
        assert pids, "the test's children printed no process id"
        assert [pid for pid in pids if self.runs(pid)] == []

    def wait_for_end(self, pid: int, within_s: float = 10) -> None:
        deadline = time.monotonic() + within_s
        while self.runs(pid):
            assert time.monotonic() < deadline, f"process {pid} still runs"
            time.sleep(0.01)


@pytest.fixture
def processes() -> Processes:
    return Processes()
