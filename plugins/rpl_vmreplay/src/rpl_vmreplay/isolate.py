"""Capture one launch of a program: the native tool, what it reports, and the folder that it writes."""

from __future__ import annotations

import ctypes
import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_core.cli.output import shown_while_running
from rpl_core.errors import BadDataError, ExitCode, MissingError, NoVerdictError, RplError, UsageError
from rpl_core.files import make_directory, read_regular, storage_error
from rpl_core.process import (
    ApplicationExitError,
    ProcessRequest,
    ProcessResult,
    describe_exit,
    require_program,
    run_command,
)
from rpl_core.text import counted, readable
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import doubts_of, open_capture
from rpl_vmreplay.capture.layout import DISPATCH, REGIONS, SENTINEL

_EXTENDED = 1  # REG_EXTENDED of <regex.h>, the same in glibc and musl
#: glibc's regex_t takes 64 bytes on x86-64.
_COMPILED_BYTES = 1024
_MESSAGE_BYTES = 200


def require_expression(text: str) -> str:
    """``text``, or UsageError with what the C library has against it, before the program is started."""
    if "\0" in text:
        raise UsageError("--kernel holds a NUL character")
    library = ctypes.CDLL(None)
    compiled = ctypes.create_string_buffer(_COMPILED_BYTES)
    code = library.regcomp(compiled, text.encode("utf-8", "surrogateescape"), _EXTENDED)
    if code:
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        library.regerror(code, compiled, message, len(message))
        raise UsageError(
            f"--kernel {text!r} is no extended regular expression: {message.value.decode()}",
            next_step="put a backslash before characters such as ( ) [ ] * that stand for themselves",
        )
    library.regfree(compiled)
    return text


# What the capture tool reports while the program runs, one file for each process; see docs/REPLAY.md.

#: Names of kernels that are read of one process; templates make them long.
_LARGEST_NAMES = 16 << 20
_LARGEST_STATUS = 1 << 20
_NEAREST = 3
_LEAST_LIKENESS = 0.3

State = Literal[
    "refused", "loaded", "capturing", "captured", "not_drained", "not_finished", "failed", "ended"
]
#: Of several processes the one that says most about the outcome, first.
_ORDER = (
    "captured", "capturing", "not_drained", "not_finished", "failed", "refused", "ended", "loaded",
)  # fmt: skip


class ProcessStatus(BaseModel):
    """``<pid>.json``."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    pid: Annotated[int, Field(ge=0)]
    state: State
    reason: str | None = None
    output: str | None = None
    matches: Annotated[int, Field(ge=0)] = 0
    launches: Annotated[int, Field(ge=0)] = 0
    #: Both of a capture that failed for want of space: 0 where nothing more is known.
    needed_bytes: Annotated[int, Field(ge=0)] | None = None
    free_bytes: Annotated[int, Field(ge=0)] | None = None


def read_statuses(folder: Path) -> tuple[ProcessStatus, ...]:
    """Every process that loaded the tool, the most telling one first."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            content = read_regular(path, _LARGEST_STATUS, links=False)
            found.append(ProcessStatus.model_validate_json(content))
        except (
            ValidationError,
            BadDataError,
            MissingError,
        ):  # the program can write there too; what isn't a status says nothing
            continue
    return tuple(sorted(found, key=lambda one: (_ORDER.index(one.state), -one.launches, one.pid)))


def launched_kernels(folder: Path) -> tuple[str, ...]:
    """Demangled names of all kernels that any process launched, each once."""
    names: dict[str, None] = {}
    for path in sorted(folder.glob("*.kernels")):
        with path.open("rb") as stream:
            text = stream.read(_LARGEST_NAMES).decode("utf-8", "replace")
        for line in text.splitlines():
            mangled, _, demangled = line.partition("\t")
            names[demangled or mangled] = None
    return tuple(names)


def nearest_names(expression: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Up to three of ``names`` that are most like what the expression asks for."""
    wanted = "".join(re.findall(r"\w+", expression)).lower()

    def likeness(name: str) -> float:
        return difflib.SequenceMatcher(None, wanted, _short(name).lower()).ratio()

    rated = sorted(((likeness(name), name) for name in names), key=lambda one: (-one[0], one[1]))
    return tuple(name for value, name in rated[:_NEAREST] if value >= _LEAST_LIKENESS)


def _short(name: str) -> str:
    """The name without its arguments, template arguments and namespaces."""
    return re.split(r"[(<]", name.removeprefix("void "), maxsplit=1)[0].rpartition("::")[2]


# The folder of a capture: nothing is written over, an older capture only gives way to a whole one.


@contextmanager
def output_folder(path: Path, *, replace: bool) -> Iterator[Path]:
    """``path`` as an absolute one, free for a capture. With ``replace`` a capture in it is moved aside first.

    It comes back unless a finished capture has taken its place; what a failed one left is then beside it.
    """
    path = path.absolute()
    older = _moved_aside(path, replace=replace)
    try:
        make_directory(path.parent)
        yield path
    finally:
        if older is not None:
            _settle(path, older)


def _moved_aside(path: Path, *, replace: bool) -> Path | None:
    if not path.exists() and not path.is_symlink():
        return None
    if path.is_symlink() or not path.is_dir():
        raise UsageError(f"{path} is no folder", next_step="choose another one with -o DIR")
    if not any(path.iterdir()):
        return None
    if not replace:
        raise UsageError(
            f"{path} exists and is not empty", next_step="choose another folder with -o DIR, or add --replace"
        )
    if not (path / DISPATCH).exists() and not (path / REGIONS).exists():
        raise UsageError(
            f"{path} is no capture: --replace leaves it alone", next_step="choose another folder"
        )
    return _renamed(path, f"{path.name}.before")


def _settle(path: Path, older: Path) -> None:
    if (path / SENTINEL).exists():
        shutil.rmtree(older, ignore_errors=True)
        return
    if path.exists():
        _renamed(path, f"{path.name}.incomplete")
    older.rename(path)


def _renamed(path: Path, name: str) -> Path:
    target, number = path.with_name(name), 2
    while target.exists() or target.is_symlink():
        target, number = path.with_name(f"{name}-{number}"), number + 1
    try:
        return path.rename(target)
    except OSError as error:
        raise storage_error(path, error) from error


# Run a program with the capture tool in it, and say what became of that.

_PREFIX = "RPL_ISOLATE_"
#: Files of a capture that are looked at while it is written (chosen: looking must stay cheap).
_MOST_FILES = 2000
#: The runtime's own switch for addresses that are low and the same in each run.
_LOW_ADDRESSES = "HSA_RESERVE_SVM"


@frozen
class IsolateRequest:
    """One program and the launch to capture of it."""

    command: tuple[str, ...]
    library: Path
    output: Path
    kernel: str | None = None
    dispatch: int = 0
    regions: str = "full"
    post: str = "hashes"
    hashing: bool = True
    compress: bool = False
    low_addresses: bool = True
    drain_timeout_s: float | None = None
    kernel_timeout_s: float | None = None
    time_limit_s: float | None = None
    replace: bool = False


@frozen
class Isolated:
    """How the program ended and what the tool says, of the process that says most first."""

    result: ProcessResult
    statuses: tuple[ProcessStatus, ...]
    #: Demangled names of what was launched.
    kernels: tuple[str, ...]


def isolate(request: IsolateRequest, sink: Callable[[str], None]) -> Isolated:
    """Run the program; its output goes to ``sink`` line by line. Raises as ``run_command`` does."""
    require_program(request.command)
    with (
        output_folder(request.output, replace=request.replace) as output,
        tempfile.TemporaryDirectory(prefix="rpl-isolate-") as status,
    ):
        environment = _environment(request, output, Path(status), os.environ)
        program = ProcessRequest(
            command=request.command, environment=environment, time_limit_s=request.time_limit_s
        )
        with shown_while_running("isolate", lambda: _so_far(Path(status), output)):
            result = run_command(program, sink)
        return Isolated(result, read_statuses(Path(status)), launched_kernels(Path(status)))


def _so_far(status: Path, output: Path) -> str:
    """What the tool has done: how much there is to write is known only when it has written it."""
    told = read_statuses(status)
    if not told:
        return "the program starts"
    if told[0].state != "capturing":
        return f"{told[0].state}, {counted(told[0].launches, 'launch', 'launches')} so far"
    written = sum(file.stat().st_size for file in islice(output.rglob("*"), _MOST_FILES) if file.is_file())
    return f"capturing, {written / (1 << 20):,.0f} MiB written"


def _environment(
    request: IsolateRequest, output: Path, status: Path, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The variables of docs/REPLAY.md; a tool that is there already stays."""
    tools = " ".join(filter(None, (str(request.library), inherited.get("HSA_TOOLS_LIB"))))
    given: dict[str, object] = {
        "OUTPUT": output,
        "STATUS": status,
        "PID": "session",  # run_command gives the program a session of its own
        "KERNEL": request.kernel,
        "DISPATCH": request.dispatch,
        "REGIONS": request.regions,
        "POST": request.post,
        "HASH": "xxh3" if request.hashing else "none",
        "COMPRESS": "zstd" if request.compress else "none",
        "DRAIN_TIMEOUT_S": request.drain_timeout_s,
        "KERNEL_TIMEOUT_S": request.kernel_timeout_s,
        "LOG": inherited.get(f"{_PREFIX}LOG"),
    }
    kept = {name: value for name, value in inherited.items() if not name.startswith(_PREFIX)}
    own = {_PREFIX + name: str(value) for name, value in given.items() if value is not None}
    runtime = {
        "HSA_TOOLS_LIB": tools,
        "HSA_TOOLS_REPORT_LOAD_FAILURE": "1",
        "HSA_TOOLS_ROCPROFILER_V1_TOOLS": "1",
    }
    if request.low_addresses:
        runtime[_LOW_ADDRESSES] = "1"
    return {**kept, **own, **runtime}


# What an attempt to capture a launch means: its exit code, one line, and the remedy.

_NAME_WIDTH = 160


@frozen
class Outcome:
    """``error`` is what ends the command; None: captured, or no launch matched."""

    state: str
    exit_code: ExitCode
    #: What can be said of the capture in one line.
    fact: str
    #: The folder, whole or cut short.
    folder: str | None
    matches: int
    launches: int
    nearest: tuple[str, ...] = ()
    #: What a reader of the capture should know beside.
    warnings: tuple[str, ...] = ()
    error: RplError | None = None


def outcome_of(request: IsolateRequest, isolated: Isolated) -> Outcome:
    """The capture's outcome; a program that failed is told first, whatever was captured (76)."""
    outcome = _of_status(request, isolated, isolated.statuses[0]) if isolated.statuses else _not_loaded()
    if isolated.result.succeeded:
        return outcome
    captured = "the capture is whole and kept" if outcome.state == "captured" else outcome.fact
    error = ApplicationExitError(isolated.result, cause=None)
    error.fact = f"{error.fact} ({captured})"
    return Outcome(
        state=outcome.state,
        exit_code=ExitCode.APPLICATION_FAILED,
        fact=f"the application {describe_exit(isolated.result)}; {captured}",
        folder=outcome.folder,
        matches=outcome.matches,
        launches=outcome.launches,
        nearest=outcome.nearest,
        warnings=outcome.warnings,
        error=error,
    )


def _not_loaded() -> Outcome:
    error = MissingError(
        "nothing was captured: the ROCr runtime never loaded the capture tool",
        cause="the program uses no HSA or HIP, links the runtime statically, clears its environment, or"
        " another profiler's tool holds the place",
        next_step="run a HIP program directly, not under a profiler",
    )
    return Outcome("not_loaded", error.exit_code, error.fact, None, 0, 0, error=error)


def _of_status(request: IsolateRequest, isolated: Isolated, status: ProcessStatus) -> Outcome:
    matches = max(statuse.matches for statuse in isolated.statuses)
    launches = sum(statuse.launches for statuse in isolated.statuses)
    if status.state == "captured" and status.output is not None:
        # From the folder itself. Raises as ``open_capture`` does when the program damaged it
        # afterwards.
        folder = status.output
        capture = open_capture(Path(folder))
        name = readable(capture.dispatch.demangled_name, _NAME_WIDTH)
        fact = (
            f"captured {name} to {folder}: {counted(len(capture.regions), 'region')}, {capture.bytes} bytes"
        )
        warnings = () if capture.extras is None else doubts_of(capture.extras)
        return Outcome("captured", ExitCode.OK, fact, folder, matches, launches, warnings=warnings)
    if status.state in ("ended", "loaded"):
        return _no_match(request, isolated, matches, launches)
    error = _failure(status)
    return Outcome(status.state, error.exit_code, error.fact, status.output, matches, launches, error=error)


def _no_match(request: IsolateRequest, isolated: Isolated, matches: int, launches: int) -> Outcome:
    asked = "" if request.kernel is None else f" of a kernel like {request.kernel!r}"
    nearest: tuple[str, ...] = ()
    if not isolated.kernels:
        fact = "nothing was captured: the program launched no kernel"
    elif matches:
        were = f"there {'was' if matches == 1 else 'were'} {counted(matches, 'launch', 'launches')}"
        fact = f"nothing was captured: {were}{asked}, numbered from 0, and"
        fact += f" --dispatch {request.dispatch} was asked for"
    else:
        nearest = nearest_names(request.kernel or "", isolated.kernels)
        shown = ", ".join(readable(name, _NAME_WIDTH) for name in nearest)
        fact = f"nothing was captured: none of {len(isolated.kernels)} kernels has a name like"
        fact += f" {request.kernel!r}" + (f"; the nearest are {shown}" if nearest else "")
    return Outcome("no_match", ExitCode.NEGATIVE_FINDING, fact, None, matches, launches, nearest)


def _failure(status: ProcessStatus) -> RplError:
    reason = readable(status.reason, 400) if status.reason else None
    if status.state == "refused":
        return MissingError(
            "the capture tool does not know this ROCr runtime",
            cause=reason,
            next_step="a newer rpl-native, or a runtime of ROCm 6.0 to 7.x",
        )
    if status.state == "not_drained":
        return NoVerdictError(
            "nothing was captured: work in flight did not end in time",
            cause=reason or "a kernel that waits for the host, or runs longer",
            next_step="raise --drain-timeout, or capture an earlier launch",
        )
    if status.state == "not_finished":
        return NoVerdictError(
            "the captured launch did not end in time",
            cause=reason or "it waits for another kernel or for the host",
            next_step="raise --kernel-timeout",
        )
    if status.state == "capturing":
        return NoVerdictError(
            "the program ended while its memory was being captured",
            cause="it exits in another thread without waiting for its kernels",
            next_step="capture an earlier launch",
        )
    if status.needed_bytes is not None:
        needed = f"the capture takes up to {status.needed_bytes} bytes" if status.needed_bytes else reason
        return MissingError(
            "nothing was captured: there is no space left for it",
            cause=f"{needed}, {status.free_bytes or 0} are free in {status.output}",
            next_step="free some space, choose another place with -o, or take less: --regions referenced,"
            " --compress, --after hashes",
        )
    return RplError("nothing was captured: the capture tool failed", cause=reason)
