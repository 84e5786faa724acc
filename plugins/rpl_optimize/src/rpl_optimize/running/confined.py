"""Confine this process as it was told, then become the command: the program that a sandbox starts.

It stands alone, so that ``python -I -S`` runs it. The first argument is a JSON object (see ``sandbox.py``),
the rest the command. It makes a tree of its own out of what the command may see.
Sources: mount(2), pivot_root(2), user_namespaces(7), pid_namespaces(7), capabilities(7).
"""

# It starts before every command of a build, and pathlib would double its start.
# ruff: noqa: PTH103, PTH109, PTH110, PTH112, PTH114, PTH115, PTH120, PTH123, PTH211

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import warnings  # noqa: F401 - execvp wants it, when the standard library is out of sight

# <linux/sched.h> and <sys/mount.h>
_NEW_MOUNTS, _NEW_IPC, _NEW_USERS, _NEW_PIDS, _NEW_NETWORK = (
    0x20000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _UNBINDABLE, _PRIVATE = 1, 32, 4096, 16384, 1 << 17, 1 << 18
_FLAGS = {
    "ro": 1,
    "nosuid": 2,
    "nodev": 4,
    "noexec": 8,
    "noatime": 1024,
    "nodiratime": 2048,
    "relatime": 1 << 21,
}
_DETACH, _DIE_WITH_PARENT, _PIVOT_ROOT = 2, 1, 155
_DROP_CAPABILITY, _NO_NEW_PRIVILEGES, _CAPABILITIES = 24, 38, 64
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = (source.encode(), target.encode(), None if kind is None else kind.encode())
    _check(_LIBC.mount(*words, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def _bound(path: str, place: str, root: str) -> None:
    """``path`` at ``place`` below ``root``; a link as a link."""
    target = root + place
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        if not os.path.lexists(target):
            os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    _mount(path, target, None, _BIND | _RECURSIVE)


def _protect(top: str) -> None:
    """Make the mounts at ``top`` and below read-only; flags that were locked with them stay."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        mounts = [line.split()[4:6] for line in table]
    for place, options in mounts:
        path = place.encode("latin-1", "replace").decode("unicode_escape") if "\\" in place else place
        if path == top or path.startswith(top + "/"):
            locked = sum(_FLAGS.get(word, 0) for word in options.split(","))
            _mount("none", path, None, _REMOUNT | _BIND | _READ_ONLY | locked)


def _own_places(root: str) -> None:
    """What every tree has of its own: temporary files, processes, and the devices that do no harm."""
    for place, kind in (("tmp", "tmpfs"), ("dev", "tmpfs"), ("proc", "proc")):
        os.makedirs(f"{root}/{place}", exist_ok=True)
        flags = _FLAGS["nosuid"] | (_FLAGS["nodev"] | _FLAGS["noexec"] if kind == "proc" else 0)
        _mount(kind, f"{root}/{place}", kind, flags)
    os.makedirs(f"{root}/dev/shm")  # noqa: S108 - of its own
    for name in _DEVICES:
        _bound(f"/dev/{name}", f"/dev/{name}", root)
    for link, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{link}")


def _own_tree(mounts: list[list[str]], root: str) -> None:
    _mount("none", "/", None, _RECURSIVE | _PRIVATE)
    if mounts[0][2] == "/":
        _, whole, _ = mounts.pop(0)
        _mount(whole, root, None, _BIND | _RECURSIVE)
        _protect(root)
    else:
        _mount("tmpfs", root, "tmpfs", _FLAGS["nosuid"], "mode=755")
    _mount("none", root, None, _UNBINDABLE)  # what shows a directory around it does not show it again
    _own_places(root)
    for how, path, place in mounts:
        _bound(path, place, root)
        if how == "read" and not os.path.islink(path):
            _protect(root + place)
    here = os.getcwd()
    os.chdir(root)
    _check(_LIBC.syscall(_PIVOT_ROOT, b".", b"."), "pivot_root")
    _check(_LIBC.umount2(b".", _DETACH), "umount")
    os.chdir(here)


def _own_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    wanted = _NEW_USERS | _NEW_MOUNTS | _NEW_IPC | _NEW_PIDS | _NEW_NETWORK
    _check(_LIBC.unshare(wanted), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _forked() -> None:
    """Go on in a child; this process waits and ends as the child does."""
    child = os.fork()
    if child == 0:
        _LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        return
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _powerless() -> None:
    """In its own namespaces root has every power, that to undo all of this among them."""
    for capability in range(_CAPABILITIES):
        _LIBC.prctl(_DROP_CAPABILITY, capability)  # fails for those that this kernel does not know
    _check(_LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")


def main(arguments: list[str]) -> None:
    spec, command = json.loads(arguments[0]), arguments[1:]
    try:
        _own_namespaces()
        _forked()  # the first process of the new numbering, which collects the others' ends
        _own_tree(spec["mounts"], spec["root"])
        _forked()
        _powerless()
    except OSError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        os._exit(125)
    try:
        os.execvp(command[0], command)  # noqa: S606 - that is what this program is for
    except OSError as error:
        print(f"error: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
