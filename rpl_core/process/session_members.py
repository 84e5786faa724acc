"""The processes of one session, found in /proc, and sending signals to all of them.

A command started in its own session has its process id as session and group id. Descendants may make
groups of their own (a shell with job control does) and stay in the session; only a daemon that calls
setsid itself leaves it, and is left alone. See setsid(2), proc_pid_stat(5).
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_PROC = Path("/proc")
_DEAD_STATES = frozenset("ZXx")


def live_members(leader_pid: int) -> tuple[int, ...]:
    """Process ids in the session or group of ``leader_pid`` that still execute, sorted; no zombies."""
    names = [entry.name for entry in _PROC.iterdir()]
    return tuple(sorted(int(name) for name in names if name.isdigit() and _belongs(name, leader_pid)))


def signal_members(leader_pid: int, number: signal.Signals) -> None:
    """Send ``number`` to every member.

    The leader must not have been reaped, so that its id can't belong to a stranger by now.
    """
    try:
        os.killpg(leader_pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:  # one member changed its user; the others got the signal
        pass
    for pid in live_members(leader_pid):
        _signal_if_outside_group(pid, leader_pid, number)


def _signal_if_outside_group(pid: int, leader_pid: int, number: signal.Signals) -> None:
    try:
        if os.getpgid(pid) != leader_pid:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _belongs(pid: str, leader_pid: int) -> bool:
    try:
        status = (_PROC / pid / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:  # it ended meanwhile
        return False
    # The name in parentheses may itself hold spaces and parentheses: the fields start after the last one.
    fields = status.rpartition(")")[2].split()
    if len(fields) < 4 or fields[0] in _DEAD_STATES:
        return False
    group, session = fields[2], fields[3]
    return str(leader_pid) in (group, session)
