"""The one way in which rpl starts a program that reads or runs what a candidate says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.process import ProcessRequest, run_command
from rpl_optimize.isolation.sandbox import _memory_limit, find_sandbox, needed_paths, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rpl_core.process import ProcessResult
    from rpl_optimize.isolation.sandbox import Reach

__all__ = ["run_confined"]


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
