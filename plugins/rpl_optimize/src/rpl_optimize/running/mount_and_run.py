"""Become a command that sees other files in the place of some: ``OVER AT [OVER AT ...] -- COMMAND``.

It stands alone, so that ``python -I -S`` runs it. Each OVER, a file or directory, is mounted over AT in a
mount namespace of this process, so nobody else sees it and it ends with the command. With ``--place FOLDER``
first, a command that runs elsewhere than in FOLDER finds each OVER also where AT lies seen from there.
Sources: mount(2), mount_namespaces(7), user_namespaces(7).
"""

# It starts before every run of a program, and pathlib would double its start.
# ruff: noqa: PTH109, PTH110, PTH118, PTH123, PTH208

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import warnings  # noqa: F401 - execvp wants it, when the standard library is out of sight

# <linux/sched.h> and <sys/mount.h>
_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: str, flags: int) -> None:
    words = (os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), b"")
    _check(_LIBC.mount(*words), f"mount {target}")


def _own_namespace() -> None:
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEW_USERS | _NEW_MOUNTS) != 0:
        _check(_LIBC.unshare(_NEW_MOUNTS), "unshare")  # root, where users may have no namespaces
        return
    maps = (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"))
    for name, text in maps:
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        except PermissionError:
            pass  # root without its powers may map nobody; its files stay its own all the same


def _forked() -> None:
    """Go on in a child; this process passes signals on and ends as the child does."""
    child = os.fork()
    if child == 0:
        return
    for number in _PASSED_ON:
        signal.signal(number, lambda received, _frame: os.kill(child, received))
    while True:
        ended, status = os.wait()
        if ended != child:
            continue
        if os.WIFSIGNALED(status):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
            os.kill(os.getpid(), os.WTERMSIG(status))
        os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _places(at: str, place: str | None) -> list[str]:
    """Where the file is for the command: as it was named, and seen from where the command runs."""
    places = [os.path.realpath(at)]
    here = os.getcwd()
    if place is not None and os.path.realpath(place) != os.path.realpath(here):
        other = os.path.realpath(os.path.join(here, os.path.relpath(at, place)))
        if os.path.exists(other) and other not in places:
            places.append(other)
    return places


def main(arguments: list[str]) -> None:
    place = None
    if arguments[0] == "--place":
        place, arguments = arguments[1], arguments[2:]
    end = arguments.index("--")
    pairs, command = list(zip(arguments[:end:2], arguments[1:end:2], strict=True)), arguments[end + 1 :]
    try:
        here = os.getcwd()
        places = [(over, target) for over, at in pairs for target in _places(at, place)]
        if len(os.listdir("/proc/self/task")) > 1:
            _forked()  # a profiler that was loaded into this process runs threads, which have no namespace
        _own_namespace()
        _mount("none", "/", _RECURSIVE | _PRIVATE)
        for over, target in places:
            _mount(over, target, _BIND | _RECURSIVE)
        os.chdir(here)  # what was mounted there is only seen when the way is gone anew
    except OSError as error:
        hint = " (user namespaces are not allowed)" if error.errno in (errno.EPERM, errno.ENOSPC) else ""
        print(f"error: nothing can be mounted here: {error}{hint}", file=sys.stderr)
        os._exit(125)
    try:
        os.execvp(command[0], command)  # noqa: S606 - that is what this program is for
    except OSError as error:
        print(f"error: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
