"""Watching over one started command until every process of its session is gone.

A command started in its own session has its process id as session and group id. Descendants may make
groups of their own (a shell with job control does) and stay in the session; only a daemon that calls
setsid itself leaves it, and is left alone. See setsid(2), proc_pid_stat(5).

Time, interrupts and output are handled in one loop. The first process is reaped last: as long as it is a
zombie, its id names this session and no other.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.process.output import OutputStream

# Noting SIGINT, SIGTERM and SIGHUP while a command runs, instead of dying on them.
#
# The command has its own session, so the terminal's Ctrl-C reaches rpl alone, and rpl has to stop the
# command. A raised KeyboardInterrupt could strike between any two statements and leave processes behind.

_WATCHED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
_CLOSED = -1


class InterruptWatch:
    """Context manager that counts interrupts in ``count`` and calls ``notify`` at each.

    A signal that rpl was told to ignore (``nohup``) stays ignored. Outside the main thread Python allows
    no handlers, and the watch sees nothing.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self.count = 0
        self.first: signal.Signals | None = None
        self._notify = notify
        self._previous: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            try:
                self._install()
            except BaseException:  # Ctrl-C between two of the installations
                self._restore()
                raise

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _install(self) -> None:
        # SIGINT comes last: until then Ctrl-C still raises, and nothing has been started.
        for number in _WATCHED:
            previous = signal.getsignal(number)
            if previous not in (signal.SIG_IGN, None):
                self._previous.append((number, previous))
                signal.signal(number, self._note)

    def _restore(self) -> None:
        for number, previous in self._previous:
            signal.signal(number, previous)
        self._previous = []

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.first = self.first or signal.Signals(number)
        self._notify()


class WakePipe:
    """Ends a poll from a signal handler or another thread.

    ``notify`` makes ``descriptor`` readable; ``clear`` empties it. After ``close`` both do nothing.
    """

    def __init__(self) -> None:
        self.descriptor, self._write_end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write_end, False)

    def notify(self) -> None:
        if self._write_end != _CLOSED:
            with contextlib.suppress(BlockingIOError):  # full: a wake-up is pending anyway
                os.write(self._write_end, b"\0")

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass

    def close(self) -> None:
        write_end, self._write_end = self._write_end, _CLOSED
        os.close(write_end)
        os.close(self.descriptor)


_PROC = Path("/proc")
_DEAD_STATES = frozenset("ZXx")
#: Signals that end a session, each with the seconds that it gets. A profiler writes its files on SIGINT.
STOP_SEQUENCE = ((signal.SIGINT, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0))
#: Processes that outlive the first one may be about to end: children that write their own recording.
ORPHAN_GRACE_S = 2.0
_ORPHAN_SEQUENCE = STOP_SEQUENCE[1:]
_LAST_OUTPUT_S = 1.0
_POLL_S = 0.02
#: How often memory is looked at (chosen: a look takes a millisecond or two).
_MEMORY_POLL_S = 0.2
#: A group that is left is tried again so often, each after ``_POLL_S`` (chosen: half a second).
_REMOVALS = 25
#: 0 stands for the process that writes it. Where that may not be, memory is watched all the same.
_ENTER = 'group=$1; shift; { echo 0 > "$group"; } 2>/dev/null; exec "$@"'
#: After so long without output there is time to look at what came (chosen).
_SILENCE_S = 0.05


@frozen
class _Process:
    """What the kernel says of a process that still executes (no zombie): parent, group and session by id."""

    parent: int
    group: int
    session: int


def _processes() -> dict[int, _Process]:
    """All processes by their ids, without those that end meanwhile."""
    processes: dict[int, _Process] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError):
            status = (entry / "stat").read_text(encoding="ascii", errors="replace")
            # The name in parentheses may itself hold spaces and parentheses: the fields start after the last.
            state, *ids = status.rpartition(")")[2].split()[:4]
            if state not in _DEAD_STATES:
                parent, group, session = map(int, ids)
                processes[int(entry.name)] = _Process(parent, group, session)
    return processes


def live_members(leader_pid: int) -> tuple[int, ...]:
    """Process ids in the session or group of ``leader_pid`` that still execute, sorted; no zombies."""
    return tuple(
        sorted(pid for pid, process in _processes().items() if leader_pid in (process.group, process.session))
    )


def tree_of(leader_pid: int) -> frozenset[int]:
    """The session of ``leader_pid`` and all descendants, which may have sessions of their own."""
    processes = _processes()
    members = {leader_pid, *(pid for pid, process in processes.items() if process.session == leader_pid)}
    while children := {pid for pid, process in processes.items() if process.parent in members} - members:
        members |= children
    return frozenset(members)


def memory_of(pids: Iterable[int]) -> int:
    """Bytes of memory that is no file's: resident pages without shared ones (proc_pid_statm(5))."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            _, resident, shared = (_PROC / str(pid) / "statm").read_text().split()[:3]
            pages += int(resident) - int(shared)
    return pages * os.sysconf("SC_PAGE_SIZE")


@frozen
class MemoryGroup:
    """A control group of its own, which the kernel holds to a limit on memory (cgroups(7), cgroup v2)."""

    folder: Path

    def entered(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command that enters the group before it becomes ``command``, or becomes it outside."""
        return ("/bin/sh", "-c", _ENTER, "memory-group", str(self.folder / "cgroup.procs"), *command)

    def exceeded(self) -> bool:
        """Whether the kernel ended what is in it for its memory."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            lines = (self.folder / "memory.events").read_text().splitlines()
            counts = {words[0]: int(words[1]) for words in map(str.split, lines)}
            return counts.get("oom_kill", 0) > 0
        return False

    def remove(self) -> None:
        """With what is still in it. A group goes only when its processes are gone, which takes a moment."""
        with contextlib.suppress(OSError):
            if (self.folder / "cgroup.kill").exists():
                (self.folder / "cgroup.kill").write_text("1")
        for _ in range(_REMOVALS):
            with contextlib.suppress(OSError):
                self.folder.rmdir()
            if not self.folder.exists():
                break
            time.sleep(_POLL_S)


@contextlib.contextmanager
def memory_group(limit_bytes: int | None) -> Iterator[MemoryGroup | None]:
    """A new group with this limit; ``None`` where none may be made, and memory is only watched.

    A group with processes hands no limit down (cgroups(7)), so the new one mostly lies beside rpl's own.
    """
    group = None if limit_bytes is None else _made_group(limit_bytes)
    try:
        yield group
    finally:
        if group is not None:
            group.remove()


def _made_group(limit_bytes: int) -> MemoryGroup | None:
    for parent in _groups_around():
        folder = parent / f"rpl-{os.getpid()}-{time.monotonic_ns()}"
        try:
            if "memory" not in (parent / "cgroup.subtree_control").read_text().split():
                continue
            folder.mkdir()
        except OSError:
            continue
        group = MemoryGroup(folder)
        try:
            (folder / "memory.max").write_text(f"{limit_bytes}")
            (folder / "memory.oom.group").write_text("1")
        except OSError:
            group.remove()
            continue
        with contextlib.suppress(OSError):  # there is none where the kernel counts no swap
            (folder / "memory.swap.max").write_text("0")
        return group
    return None


def _groups_around() -> tuple[Path, ...]:
    """The folder of the group that rpl is in, and the one above; none without cgroup v2."""
    try:
        mounts = (_PROC / "self" / "mountinfo").read_text(errors="replace").splitlines()
        groups = (_PROC / "self" / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return ()
    tops = [Path(line.split()[4]) for line in mounts if " - cgroup2 " in line]
    groups_v2 = [line.removeprefix("0::/") for line in groups if line.startswith("0::/")]
    if not tops or not groups_v2 or ".." in groups_v2[0].split("/"):
        return ()
    folder = tops[0] / groups_v2[0]
    return (folder,) if folder == tops[0] else (folder, folder.parent)


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
    outside = [
        pid
        for pid, process in _processes().items()
        if process.session == leader_pid and process.group != leader_pid
    ]
    _signal_each(outside, number)


def _signal_each(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class Supervision:
    """One running command. ``ended_at`` is a ``time.perf_counter`` value, ``None`` while it runs."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        streams: tuple[OutputStream, ...],
        wake: WakePipe,
        interrupts: InterruptWatch,
    ) -> None:
        self.ended_at: float | None = None
        self.too_large = False
        self._child = child
        self._streams = streams
        self._wake = wake
        self._interrupts = interrupts
        self._exit_watch = threading.Thread(target=self._watch_exit, name="rpl-exit-watch", daemon=True)
        self._exit_watch.start()

    def wait(self, time_limit_s: float | None, memory_limit_bytes: int | None = None) -> bool:
        """Handle output until the command ends or an interrupt comes; ``False`` at the time limit.

        Also until all together hold more than ``memory_limit_bytes``: then ``too_large`` says so.
        """
        deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
        looked = time.monotonic()

        def done() -> bool:
            nonlocal looked
            if self.ended_at is not None or self._interrupts.count > 0:
                return True
            if memory_limit_bytes is not None and time.monotonic() - looked >= _MEMORY_POLL_S:
                self.too_large = memory_of(tree_of(self._child.pid)) > memory_limit_bytes
                looked = time.monotonic()
            return self.too_large

        return self._pump_until(done, deadline, None if memory_limit_bytes is None else _MEMORY_POLL_S)

    def kill(self) -> None:
        """End it and all descendants at once: what eats the memory is not asked to end by itself.

        All are stopped before any is killed, as a descendant whose parent is gone can't be told from a
        stranger; and then waited for, as those with sessions of their own are not among ``live_members``.
        """
        deadline = time.monotonic() + STOP_SEQUENCE[-1][1]
        tree: frozenset[int] = frozenset()
        while (new := tree_of(self._child.pid) - tree) and time.monotonic() < deadline:
            _signal_each(new, signal.SIGSTOP)
            tree |= new
        _signal_each(tree | new, signal.SIGKILL)
        self._pump_until(lambda: tree.isdisjoint(_processes()), deadline, _POLL_S)

    def clear_orphans(self) -> int:
        """After the first process ended: wait briefly for the others, then end them. Returns how many."""
        deadline = time.monotonic() + ORPHAN_GRACE_S
        self._pump_until(lambda: self._gone() or self._interrupts.count > 0, deadline, _POLL_S)
        orphans = len(live_members(self._child.pid))
        self._stop_by(_ORPHAN_SEQUENCE)
        return orphans

    def stop(self) -> tuple[int, ...]:
        """End the whole session, ever more firmly. Returns the processes that even SIGKILL did not end.

        Does nothing if all have ended. A second interrupt goes straight to SIGKILL.
        """
        if not self._gone():
            for stream in self._streams:
                stream.mute()
            self._stop_by(STOP_SEQUENCE)
        return live_members(self._child.pid)

    def finish_output(self) -> None:
        """Take what is left in the pipes. A daemon that left the session may hold them open for ever."""
        deadline = time.monotonic() + _LAST_OUTPUT_S
        for stream in self._streams:
            try:
                while stream.open and time.monotonic() < deadline and stream.read_available():
                    pass
            finally:
                stream.finish()

    def reap(self) -> int:
        """The return code as in ``subprocess``: negative for a signal. Call it after ``stop``."""
        if self._child.pid in live_members(self._child.pid):  # it hangs in the kernel and has no status
            return -signal.SIGKILL
        self._exit_watch.join()
        return self._child.wait()

    def _stop_by(self, sequence: tuple[tuple[signal.Signals, float], ...]) -> None:
        for number, grace_s in sequence:
            if self._gone():
                return
            final = number is signal.SIGKILL
            if self._hurried() and not final:
                continue
            signal_members(self._child.pid, number)
            ended = self._gone if final else self._gone_or_hurried
            self._pump_until(ended, time.monotonic() + grace_s, _POLL_S)

    def _gone(self) -> bool:
        return not live_members(self._child.pid)

    def _hurried(self) -> bool:
        return self._interrupts.count > 1

    def _gone_or_hurried(self) -> bool:
        return self._hurried() or self._gone()

    def _pump_until(
        self, done: Callable[[], bool], deadline: float | None, poll_s: float | None = None
    ) -> bool:
        in_time = True
        while not done() and in_time:
            left = None if deadline is None else deadline - time.monotonic()
            silence = _SILENCE_S if any(stream.waiting for stream in self._streams) else None
            limits = [limit for limit in (left, poll_s, silence) if limit is not None]
            in_time = left is None or left > 0
            if in_time and not self._pump(min(limits, default=None)):
                self._give_lines()
        self._give_lines()
        return in_time

    def _give_lines(self) -> None:
        for stream in self._streams:
            stream.give_lines()

    def _pump(self, timeout_s: float | None) -> bool:
        """Take what comes within the time; whether anything came."""
        poll = select.poll()
        poll.register(self._wake.descriptor, select.POLLIN)
        open_streams = {stream.fileno(): stream for stream in self._streams if stream.open}
        for descriptor in open_streams:
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if timeout_s is None else timeout_s * 1000)
        for descriptor, _ in ready:
            if descriptor == self._wake.descriptor:
                self._wake.clear()
            else:
                open_streams[descriptor].read_available()
        return bool(ready)

    def _watch_exit(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
        self.ended_at = time.perf_counter()
        self._wake.notify()
