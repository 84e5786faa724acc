"""The exact rocprofv3 command lines (reference: docs/reference/formats.md, 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rpl_rocprofv3.collector.tool_version import OutputFormat

#: Stands for the absolute directory of the pass until the pass runs.
DIRECTORY = "{directory}"
_APPLICATION_FOLLOWS = "--"
#: Every process writes a file of its own: with a fixed name children overwrite each other's.
_OUTPUT_NAME = "run_%pid%"


def trace_command(
    executable: Path, output: OutputFormat, application: Sequence[str], *, dependencies: bool
) -> tuple[str, ...]:
    """A timing pass; ``dependencies`` adds the copies and HIP calls that order the work of streams."""
    traces = ["--kernel-trace"]
    if dependencies:
        traces += ["--memory-copy-trace", "--hip-runtime-trace", "--marker-trace"]
    return (str(executable), *traces, *_output(output), _APPLICATION_FOLLOWS, *application)


def counter_command(
    executable: Path, output: OutputFormat, application: Sequence[str], counters: Sequence[str]
) -> tuple[str, ...]:
    """A counter pass. It traces no kernels: counting stretches them, so their times are worth nothing."""
    return (str(executable), "--pmc", *counters, *_output(output), _APPLICATION_FOLLOWS, *application)


def with_directory(command: Sequence[str], directory: Path) -> tuple[str, ...]:
    """Fill ``directory`` in, in the profiler's part only: the application may use the same braces."""
    end = list(command).index(_APPLICATION_FOLLOWS)
    own = (str(directory) if word == DIRECTORY else word for word in command[:end])
    return (*own, *command[end:])


def output_format_of(command: Sequence[str]) -> OutputFormat:
    """Which format a planned command asks for."""
    return OutputFormat(command[list(command).index("--output-format") + 1])


def _output(output: OutputFormat) -> tuple[str, ...]:
    return ("--output-format", output.value, "-d", DIRECTORY, "-o", _OUTPUT_NAME)
