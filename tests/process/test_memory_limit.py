"""The limit on memory holds for the sum over all processes of a command, and none of them is left."""

from __future__ import annotations

import sys

import pytest

from rpl_core.errors import MemoryLimitError
from rpl_core.exit_codes import ExitCode
from rpl_core.process import ProcessRequest, run_command

#: Starts as many of itself as it is told, one behind the other, each with 40 MiB of its own.
CHAIN = """
import os, subprocess, sys, time
left, new_session = int(sys.argv[1]), sys.argv[2] == "new"
held = bytearray(40 << 20)
held[::4096] = b"x" * (len(held) // 4096)
print(os.getpid(), flush=True)
if left:
    again = [sys.executable, "-c", sys.argv[3], str(left - 1), *sys.argv[2:]]
    subprocess.run(again, start_new_session=new_session)
elif sys.argv[4] == "stay":
    time.sleep(600)
"""


def chain(processes: int, sessions: str, then: str) -> tuple[str, ...]:
    return (sys.executable, "-c", CHAIN, str(processes - 1), sessions, CHAIN, then)


@pytest.mark.parametrize("sessions", ["same", "new"])
def test_all_together_may_not_hold_more(processes, sessions):
    """Each of the four holds 40 MiB and its interpreter, which is allowed; all of that is not."""
    lines: list[str] = []
    request = ProcessRequest(chain(4, sessions, "stay"), memory_limit_bytes=160 << 20, what="the build")
    with pytest.raises(
        MemoryLimitError, match=r"the build and its processes held more than 0\.156 GiB"
    ) as raised:
        run_command(request, lines.append)
    assert raised.value.exit_code == ExitCode.TIME_LIMIT
    assert len(lines) >= 3
    processes.assert_gone(list(map(int, lines)))


def test_what_stays_below_ends_by_itself(processes):
    lines: list[str] = []
    request = ProcessRequest(chain(2, "new", "end"), memory_limit_bytes=1 << 30)
    assert run_command(request, lines.append).succeeded
    processes.assert_gone(list(map(int, lines)))
