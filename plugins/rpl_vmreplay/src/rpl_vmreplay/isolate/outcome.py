"""What an attempt to capture a launch means: its exit code, one line, and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError, NoVerdictError, RplError
from rpl_core.exit_codes import ExitCode
from rpl_core.process.outcome import ApplicationExitError, describe_exit
from rpl_core.text.safety import readable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_vmreplay.capture.extras import doubts_of
from rpl_vmreplay.capture.folder import open_capture
from rpl_vmreplay.isolate.status import nearest_names

if TYPE_CHECKING:
    from rpl_vmreplay.isolate.run import Isolated, IsolateRequest
    from rpl_vmreplay.isolate.status import ProcessStatus

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
    matches = max(one.matches for one in isolated.statuses)
    launches = sum(one.launches for one in isolated.statuses)
    if status.state == "captured" and status.output is not None:
        return _captured(status.output, matches, launches)
    if status.state in ("ended", "loaded"):
        return _no_match(request, isolated, matches, launches)
    error = _failure(status)
    return Outcome(status.state, error.exit_code, error.fact, status.output, matches, launches, error=error)


def _captured(folder: str, matches: int, launches: int) -> Outcome:
    """From the folder itself. Raises as ``open_capture`` does when the program damaged it afterwards."""
    capture = open_capture(Path(folder))
    name = readable(capture.dispatch.demangled_name, _NAME_WIDTH)
    fact = f"captured {name} to {folder}: {counted(len(capture.regions), 'region')}, {capture.bytes} bytes"
    warnings = () if capture.extras is None else doubts_of(capture.extras)
    return Outcome("captured", ExitCode.OK, fact, folder, matches, launches, warnings=warnings)


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
