"""Runs of programs with a candidate's kernels: no network, the user's files read-only, the GPU within reach.

A candidate reaches the device only, so this is the second wall: a kernel that writes over the memory of its
process may make the host do anything. All files are there to read, but ``/tmp`` and ``/dev`` are the run's
own, except for what its command and its variables name. What a profiler needs is not known for every
machine, so a session tries its sandbox once with the unchanged program.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import attrs

from rpl_core.process import ProcessRequest, ProcessResult, run_command
from rpl_core.process.runner import starting_as
from rpl_core.values import frozen
from rpl_optimize.isolation.sandbox import SWITCH, Reach, Sandbox, find_sandbox, without_secrets

__all__ = ["ApplicationSandbox", "find_application_sandbox", "how_to_do_without", "run_application"]

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
        own = Path(variables.get("TMPDIR", _TEMPORARY)).absolute()
        seen = self.seen
        if own != _TEMPORARY and own.is_dir():
            temporary = scratch / "tmp"
            temporary.mkdir(exist_ok=True)
            seen = (*seen, (own, True, temporary))
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
