"""Run a program with the capture tool in it, and say what became of that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.cli.output import shown_while_running
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.launch import require_program
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_vmreplay.isolate.output_folder import output_folder
from rpl_vmreplay.isolate.status import ProcessStatus, launched_kernels, read_statuses

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpl_core.process import ProcessResult

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
