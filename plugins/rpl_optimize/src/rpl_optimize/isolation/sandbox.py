"""A sandbox for commands that read or run what nobody trusts, as far as this machine has one.

bubblewrap where it is installed, else user namespaces of the kernel; both give the same: no network, own
process numbers, nothing of the file system but what is named, most of it read-only. Where neither works,
commands run with limits on memory and files only, and who asked is told why.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: ``off`` runs everything without a sandbox; paths that a build needs beside what it names.
SWITCH, MORE = "RPL_SANDBOX", "RPL_SANDBOX_READ"
_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/clang"),
)
#: Variables with places where compilers and build systems look, and endings of others.
_PLACES: Final = ("PATH", "CPATH", "VIRTUAL_ENV", "PYTHONPATH", "CMAKE_PREFIX_PATH", MORE)
_PLACE_ENDINGS: Final = ("_PATH", "_ROOT", "_DIR", "_HOME")
#: Chosen: half of the memory, but what a compiler needs; no file beyond what a disk should lose to it.
_LEAST_MEMORY: Final = 4 << 30
_MOST_FILE_BYTES: Final = 8 << 30
_PROBE_S: Final = 20.0


@frozen
class Reach:
    """What a command may read and what it may write; ``scratch`` is an existing directory of its run."""

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    scratch: Path


@frozen
class Sandbox:
    """``kind``: ``bubblewrap``, ``namespaces``, or ``None`` with the ``reason`` why there is none."""

    kind: str | None
    reason: str = ""

    @property
    def summary(self) -> str:
        """For the ledger and for people."""
        if self.kind is None:
            return f"no sandbox ({self.reason}): memory and files are limited, nothing else"
        return f"{self.kind}: no network, only named files, memory and files limited"

    def wrapped(self, command: Sequence[str], place: Path, reach: Reach) -> tuple[str, ...]:
        """The command that runs ``command`` inside, in ``place``, where it has to be started."""
        limits = {"DATA": _memory_limit(), "FSIZE": _MOST_FILE_BYTES, "CORE": 0}
        readable = _outermost((*map(Path, _SYSTEM), *reach.readable))
        writable = _outermost(reach.writable)
        spec: dict[str, object] = {"limits": limits}
        if self.kind == "namespaces":
            root = reach.scratch / "root"
            root.mkdir(exist_ok=True)
            spec = {**spec, "readable": readable, "writable": writable, "root": str(root)}
        elif self.kind == "bubblewrap":
            command = (*_bubblewrap(readable, writable, place), *command)
        confined = str(Path(__file__).with_name("confined.py"))
        return (sys.executable, "-I", "-S", confined, json.dumps(spec), *command)


def find_sandbox(environment: Mapping[str, str] = os.environ) -> Sandbox:
    """The best that works here. ``RPL_SANDBOX=off`` asks for none."""
    if environment.get(SWITCH) == "off":
        return Sandbox(None, f"{SWITCH}=off")
    return _working()


def needed_paths(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Absolute paths that a command's words and variables name, and where its program is installed."""
    home = Path(environment.get("HOME", "/nonexistent"))
    hidden = (home, *home.parents)
    yield from (path for path in _named_paths(command, environment) if path not in hidden)


def _named_paths(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    program = shutil.which(next(iter(command), ""), path=environment.get("PATH"))
    if program is not None:
        yield from _installation(Path(program))
    for word in command:
        begin = word.find("/")
        if begin >= 0:
            yield from _existing(word[begin:])
    for name, value in environment.items():
        if name in _PLACES or name.endswith(_PLACE_ENDINGS):
            for path in (path for part in value.split(os.pathsep) for path in _existing(part)):
                yield from (path, *_installation(path / "any"))


def _installation(program: Path) -> Iterator[Path]:
    """Where a program lies with what belongs to it; a link leads to where it really is."""
    for path in {program, program.resolve()}:
        yield path.parent
        if path.parent.name in ("bin", "sbin"):
            yield path.parent.parent


def _existing(text: str) -> Iterator[Path]:
    path = Path(os.path.normpath(text))
    if text.startswith("/") and path != Path("/") and path.exists():
        yield path


def _outermost(paths: Iterable[Path]) -> list[str]:
    """Existing paths in order, without those inside of another one; links with what they lead to."""
    found: set[Path] = set()
    for path in paths:
        if path.is_symlink() or path.exists():
            found |= {path} if path.is_symlink() and path.parent == Path("/") else {path.resolve()}
    inside = {path for path in found if any(parent in found for parent in path.parents)}
    return sorted(map(str, found - inside))


def _bubblewrap(readable: list[str], writable: list[str], place: Path) -> tuple[str, ...]:
    # Started by root, bubblewrap would keep its capabilities: they can make mounts writable again.
    words = ["bwrap", "--die-with-parent", "--unshare-all", "--unshare-user", "--cap-drop", "ALL"]
    words += ["--new-session", "--tmpfs", "/tmp", "--dev", "/dev"]  # noqa: S108
    for path in readable:
        link = Path(path)
        words += ["--symlink", str(link.readlink())] if link.is_symlink() else ["--ro-bind", path]
        words.append(path)
    for path in writable:
        words += ["--bind", path, path]
    return (*words, "--proc", "/proc", "--chdir", str(place.absolute()), "--")


def _memory_limit() -> int:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_MEMORY, whole // 2)


@cache
def _working() -> Sandbox:
    """Tried once: a kernel or a container may refuse what its manual promises."""
    kinds = ("bubblewrap", "namespaces") if shutil.which("bwrap") else ("namespaces",)
    reason = ""
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="rpl-sandbox-") as scratch:
            place = Path(scratch)
            command = Sandbox(kind).wrapped(("true",), place, Reach((), (place,), place))
            try:
                done = subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False, cwd=place)
            except (OSError, subprocess.TimeoutExpired) as error:
                reason = str(error)
                continue
        if done.returncode == 0:
            return Sandbox(kind)
        reason = (done.stderr.decode("utf-8", "replace").strip() or f"{kind} ended with {done.returncode}")[
            :200
        ]
    return Sandbox(None, reason)
