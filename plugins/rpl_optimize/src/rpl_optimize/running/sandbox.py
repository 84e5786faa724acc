"""A sandbox for commands that read or run what nobody trusts, as far as this machine has one.

bubblewrap where it is installed, else user namespaces of the kernel; both give the same: no network, own
process numbers, nothing of the file system but what is named, most of it read-only. Where neither works,
commands run with limits on memory and files only, and who asked is told why.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from rpl_core.process import ProcessRequest, ProcessResult, run_command, starting_as
from rpl_core.values import frozen

# A sandbox for commands that read or run what nobody trusts, as far as this machine has one.
#
# bubblewrap where it is installed, else user namespaces of the kernel; both give the same: no network, own
# process numbers, nothing of the file system but what is named, most of it read-only. Where neither works,
# commands run with limits on memory and files only, and who asked is told why.

#: ``off``: everything is run without a sandbox, ``builds``: the runs of programs are; paths that a build
#: needs beside what it names.
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
#: Limits of a shell are inherited: memory in KiB and files in blocks of 512 bytes (POSIX, ``ulimit``).
_LIMITED: Final = (
    'ulimit -c 0; ulimit -d "$1" 2>/dev/null; ulimit -f "$2" 2>/dev/null; out=$3; shift 3; '
    'if [ -n "$out" ]; then exec "$@" > "$out"; else exec "$@"; fi'
)
_BUBBLEWRAP: Final = {"read": "--ro-bind", "write": "--bind", "device": "--dev-bind"}


#: Endings of variables that hold keys for services: no compiler needs one, and no kernel.
_SECRET_ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
#: Names, separated by commas, of such variables that a program needs all the same.
KEEP: Final = "RPL_KEEP_VARIABLES"
_KEPT: ContextVar[frozenset[str]] = ContextVar("_KEPT", default=frozenset())


@contextmanager
def keeping(names: Iterable[str]) -> Iterator[None]:
    """Within it, variables of these names reach what is confined, whatever they end in."""
    token = _KEPT.set(frozenset(names))
    try:
        yield
    finally:
        _KEPT.reset(token)


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Without those that hold keys, but for what the user keeps by setting or ``RPL_KEEP_VARIABLES``."""
    needed = _KEPT.get() | {name.strip() for name in os.environ.get(KEEP, "").split(",")}
    return {
        name: value
        for name, value in variables.items()
        if name in needed or not name.upper().endswith(_SECRET_ENDINGS)
    }


@frozen
class Reach:
    """What a command may read and what it may write; ``scratch`` is an existing directory of its run.

    ``/`` as readable is everything but ``/tmp`` and ``/dev``, of which the other paths show a part.
    ``seen`` are a place, whether it may be written there, and the directory that is seen there.
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    scratch: Path
    devices: tuple[Path, ...] = ()
    seen: tuple[tuple[Path, bool, Path], ...] = ()

    def mounts(self) -> list[tuple[str, str, str]]:
        """How (``read``, ``write``, ``device``), what, and where it is seen; parents come first."""
        system = () if Path("/") in self.readable else map(Path, _SYSTEM)
        writable, readable = _outermost(self.writable), _outermost((*system, *self.readable))
        covered = {place for place, _, _ in self.seen}  # what is named inside shows through
        readable |= {path for path in self.readable if covered.intersection(path.parents)}
        places = {path: ("read", path) for path in readable if not writable.intersection(path.parents)}
        places |= {path: ("device", path) for path in self.devices if path.exists()}
        for place, may_write, real in self.seen:
            places[place] = ("write" if may_write else "read", real.absolute())
        places |= {path: ("write", path) for path in writable}
        ordered = sorted(places.items(), key=lambda item: (len(item[0].parts), item[0]))
        return [(how, str(real), str(place)) for place, (how, real) in ordered]


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

    def wrapped(
        self,
        command: Sequence[str],
        place: Path,
        reach: Reach,
        stdout: Path | None = None,
        *,
        limited: bool = True,
    ) -> tuple[str, ...]:
        """The command that runs ``command`` inside, in ``place``, where it has to be started.

        ``stdout`` is a file that gets its output, as far as files may grow. ``limited``: memory and files.
        """
        if self.kind == "namespaces":
            root = reach.scratch / "root"
            root.mkdir(exist_ok=True)
            spec = json.dumps({"root": str(root), "mounts": reach.mounts()})
            confined = str(Path(__file__).with_name("confined.py"))
            command = (sys.executable, "-I", "-S", confined, spec, *command)
        elif self.kind == "bubblewrap":
            command = (*_bubblewrap(reach.mounts(), place), *command)
        if not limited:
            return tuple(command)
        limits = (str(_memory_limit() >> 10), str(_MOST_FILE_BYTES >> 9))
        return ("/bin/sh", "-c", _LIMITED, "sandbox", *limits, str(stdout or ""), *command)


def find_sandbox(environment: Mapping[str, str] = os.environ) -> Sandbox:
    """The best that works here. ``RPL_SANDBOX=off`` asks for none."""
    if environment.get(SWITCH) == "off":
        return Sandbox(None, f"{SWITCH}=off")
    return _working()


def needed_paths(
    command: Sequence[str], environment: Mapping[str, str], place: Path | None = None
) -> Iterator[Path]:
    """Paths that a command's words and variables name, and where its program is installed.

    Words may lead out of ``place``, where the command starts (``-I../include``).
    """
    home = Path(environment.get("HOME", "/nonexistent"))
    hidden = (home, *home.parents)
    yield from (path for path in _paths_of_command(command, environment, place) if path not in hidden)


def _paths_of_command(
    command: Sequence[str], environment: Mapping[str, str], place: Path | None
) -> Iterator[Path]:
    program = shutil.which(next(iter(command), ""), path=environment.get("PATH"))
    if program is not None:
        yield from _installation(Path(program))
    for word in command:
        begin = word.find("/")
        if begin >= 0:
            yield from _existing(word[begin:])
        climb = word.find("..")
        if climb >= 0 and place is not None:
            yield from _existing(f"{place.absolute()}/{word[climb:]}")
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


def _outermost(paths: Iterable[Path]) -> set[Path]:
    """Existing paths without those inside of another one; links with what they lead to."""
    outermost: set[Path] = set()
    for path in paths:
        if path.is_symlink() or path.exists():
            outermost |= {path} if path.is_symlink() and path.parent == Path("/") else {path.resolve()}
    # The whole tree does not show what lies in places that a sandbox has of its own.
    whole = outermost & {Path("/")}
    around = outermost - whole
    return whole | {path for path in around if not any(parent in around for parent in path.parents)}


def _bubblewrap(mounts: list[tuple[str, str, str]], place: Path) -> tuple[str, ...]:
    # Started by root, bubblewrap would keep its capabilities: they can make mounts writable again.
    words = ["bwrap", "--die-with-parent", "--unshare-all", "--unshare-user", "--cap-drop", "ALL"]
    words.append("--new-session")
    own = ["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"]  # noqa: S108
    if mounts[0][2] != "/":
        words += own
    for how, real, seen in mounts:
        if Path(real).is_symlink():
            words += ["--symlink", str(Path(real).readlink()), seen]
        else:
            words += [_BUBBLEWRAP[how], real, seen]
        if seen == "/":
            words += own
    return (*words, "--chdir", str(place.absolute()), "--")


def _memory_limit() -> int:
    """Bytes for one process, by the kernel, and for all of a command together, as it is watched."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_MEMORY, whole // 2)


@cache
def refused(kind: str) -> str | None:
    """Why a kind does not work here; tried once, as a container may refuse what the manual promises."""
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    with tempfile.TemporaryDirectory(prefix="rpl-sandbox-") as scratch:
        place = Path(scratch)
        command = Sandbox(kind).wrapped(("true",), place, Reach((), (place,), place))
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False, cwd=place)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.decode("utf-8", "replace").strip() or f"{kind} ended with {done.returncode}")[:200]


def _working() -> Sandbox:
    reason = ""
    for kind in ("bubblewrap", "namespaces"):
        refusal = refused(kind)
        if refusal is None:
            return Sandbox(kind)
        reason = refusal
    return Sandbox(None, reason)


# The one way in which rpl starts a program that reads or runs what a candidate says.


def run_confined(
    command: Sequence[str],
    place: Path,
    reach: Reach,
    environment: Mapping[str, str],
    time_limit_s: float,
    *,
    what: str = "the compiler",
    sink: Callable[[str], None] = lambda _line: None,
    log: Path | None = None,
    stdout: Path | None = None,
    around: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda words: words,
) -> ProcessResult:
    """Run ``command`` in ``place``, in the sandbox of this machine; errors are those of ``run_command``.

    Beside ``reach`` it reads what its words and variables name. ``stdout`` is a file for its standard output;
    ``sink`` gets the rest line by line, ``log`` all of that. ``around`` puts more words around the sandbox.
    Variables with the user's keys are left out, and all processes together hold at most half of the memory.
    """
    named = (*reach.readable, place, *needed_paths(command, environment, place))
    reach = attrs.evolve(reach, readable=named)
    request = ProcessRequest(
        around(find_sandbox().wrapped(command, place, reach, stdout)),
        environment=without_secrets(environment),
        log_path=log,
        time_limit_s=max(time_limit_s, 0.001),
        what=what,
        working_directory=place,
        memory_limit_bytes=_memory_limit(),
    )
    return run_command(request, sink)


# Runs of programs with a candidate's kernels: no network, the user's files read-only, the GPU within reach.
#
# A candidate reaches the device only, so this is the second wall: a kernel that writes over the memory of its
# process may make the host do anything. All files are there to read, but ``/tmp`` and ``/dev`` are the run's
# own, except for what its command and its variables name. What a profiler needs is not known for every
# machine, so a session tries its sandbox once with the unchanged program.

#: Device files of GPUs, and the place of temporary files, of which a sandbox has its own.
_DEVICES: Final = (Path("/dev/kfd"), Path("/dev/dri"))
_TEMPORARY: Final = Path("/tmp")  # noqa: S108 - it is left out
#: A command or a variable of more words names no files.
_MOST_NAMED: Final = 2000
_ABSOLUTE: Final = re.compile(r"/[^\s:;,'\"]*")


@frozen
class ApplicationSandbox:
    """``seen``, ``readable`` and ``devices`` are those of ``Reach``, beside what a run itself names."""

    sandbox: Sandbox
    scratch: Path | None = None
    readable: tuple[Path, ...] = ()
    seen: tuple[tuple[Path, bool, Path], ...] = ()
    devices: tuple[Path, ...] = ()

    @property
    def summary(self) -> str:
        """For the ledger and for people."""
        if self.sandbox.kind is None:
            return f"no sandbox ({self.sandbox.reason})"
        return f"{self.sandbox.kind}: no network, files read-only but for the run's own, the GPU's devices"

    @contextmanager
    def around(self, *writable: Path) -> Iterator[None]:
        """Within it, ``run_command`` runs everything in here, and never with the user's keys."""
        if self.sandbox.kind is None:
            with starting_as(_without_secrets):
                yield
            return
        with starting_as(lambda request: self._inside(request, writable)):
            yield

    def _inside(self, request: ProcessRequest, writable: Sequence[Path]) -> ProcessRequest:
        request = _without_secrets(request)
        place = (request.working_directory or Path.cwd()).absolute()
        variables = os.environ if request.environment is None else request.environment
        named = _below_temporary((*request.command, *variables.values()))
        scratch = self.scratch or writable[0]
        from_variable = Path(variables.get("TMPDIR", _TEMPORARY)).absolute()
        seen = self.seen
        if from_variable != _TEMPORARY and from_variable.is_dir():
            temporary = scratch / "tmp"
            temporary.mkdir(exist_ok=True)
            seen = (*seen, (from_variable, True, temporary))
        covered = {place for place, _, _ in self.seen}
        named = (path for path in named if not covered.intersection((path, *path.parents)))
        devices = (*_DEVICES, *self.devices)
        reach = Reach((Path("/"), place, *self.readable, *named), tuple(writable), scratch, devices, seen)
        command = self.sandbox.wrapped(request.command, place, reach, limited=False)
        return attrs.evolve(request, command=command)


def _without_secrets(request: ProcessRequest) -> ProcessRequest:
    variables = os.environ if request.environment is None else request.environment
    return attrs.evolve(request, environment=without_secrets(variables))


#: What the session that runs here found out; without one, each run asks anew.
_OF_SESSION: ContextVar[ApplicationSandbox | None] = ContextVar("_OF_SESSION", default=None)


def find_application_sandbox(environment: Mapping[str, str] = os.environ) -> Sandbox:
    """The best that works here, unless ``RPL_SANDBOX`` asks for none."""
    if environment.get(SWITCH) == "builds":
        return Sandbox(None, f"{SWITCH}=builds")
    return find_sandbox(environment)


@contextmanager
def in_session(sandbox: ApplicationSandbox) -> Iterator[None]:
    """Within it, ``run_application`` does what this session's sandbox does: none where it does not work."""
    token = _OF_SESSION.set(sandbox)
    try:
        yield
    finally:
        _OF_SESSION.reset(token)


def run_application(
    request: ProcessRequest, sink: Callable[[str], None], place: Path, readable: Sequence[Path] = ()
) -> ProcessResult:
    """``run_command`` for a program that may be a candidate's; it writes below ``place`` only."""
    of_session = _OF_SESSION.get()
    sandbox = find_application_sandbox() if of_session is None else of_session.sandbox
    devices = () if of_session is None else of_session.devices
    program = request.command[0]
    where = request.working_directory or Path()
    if shutil.which(where / program if os.sep in program else program) is None:
        return run_command(request, sink)  # which says best why it can't be started
    with ApplicationSandbox(sandbox, place, tuple(readable), devices=devices).around(place):
        return run_command(request, sink)


def how_to_do_without() -> str:
    """For people whose own program failed in it; empty where it had none."""
    of_session = _OF_SESSION.get()
    sandbox = find_application_sandbox() if of_session is None else of_session.sandbox
    return "" if sandbox.kind is None else f" (in a sandbox; {SWITCH}=builds runs it without)"


def _below_temporary(words: Sequence[str]) -> Iterator[Path]:
    for word in words[:_MOST_NAMED]:
        for part in _ABSOLUTE.findall(word):
            path = Path(os.path.normpath(part))
            if path.is_relative_to(_TEMPORARY) and path != _TEMPORARY and path.exists():
                yield path
                yield from (path.parent,) if path.parent != _TEMPORARY and not path.is_dir() else ()
