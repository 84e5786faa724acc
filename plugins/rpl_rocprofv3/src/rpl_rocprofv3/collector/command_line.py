"""The exact rocprofv3 command lines (reference: docs/reference/formats.md, 4)."""

from __future__ import annotations

import json
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


#: The file of a pass whose groups of counters take turns; ``-i`` names it.
GROUPS_FILE = "pmc_groups.json"


def counter_command(
    executable: Path,
    output: OutputFormat,
    application: Sequence[str],
    counters: Sequence[str],
    filters: Sequence[str] = (),
) -> tuple[str, ...]:
    """A counter pass. It traces no kernels: counting stretches them, so their times are worth nothing."""
    own = ("--pmc", *counters, *filters, *_output(output))
    return (str(executable), *own, _APPLICATION_FOLLOWS, *application)


def replay_command(
    executable: Path, application: Sequence[str], groups: Sequence[Sequence[str]], filters: Sequence[str]
) -> tuple[str, ...]:
    """All groups in one run: each launch is repeated once per group, its memory restored in between.

    JSON, because it alone says which pass a value is from (using-kernel-replay-rocprofv3.rst).
    """
    counters = (word for group in groups for word in ("--pmc", *group))
    mode = ("--replay-mode", "kernel", "--kernel-replay-beta-enabled")
    own = (*counters, *mode, *filters, *_output(OutputFormat.JSON))
    return (str(executable), *own, _APPLICATION_FOLLOWS, *application)


def rotation_command(
    executable: Path, output: OutputFormat, application: Sequence[str], filters: Sequence[str]
) -> tuple[str, ...]:
    """One run in which the groups of ``GROUPS_FILE`` take turns from launch to launch."""
    own = ("-i", f"{DIRECTORY}/{GROUPS_FILE}", *filters, *_output(output))
    return (str(executable), *own, _APPLICATION_FOLLOWS, *application)


def rotation_input(groups: Sequence[Sequence[str]], interval: int) -> str:
    """The text of ``GROUPS_FILE``: the next group follows after ``interval`` launches on a GPU."""
    job = {"pmc_groups": [list(group) for group in groups], "pmc_group_interval": interval}
    return json.dumps({"jobs": [job]}) + "\n"


def filter_options(kernel: str | None, launches: str | None) -> tuple[str, ...]:
    """Which launches are counted: kernels by a regular expression, and of each kernel the n-th launches."""
    regex = () if kernel is None else ("--kernel-include-regex", kernel)
    return (*regex, *(() if launches is None else ("--kernel-iteration-range", f"[{launches}]")))


def with_directory(command: Sequence[str], directory: Path) -> tuple[str, ...]:
    """Fill ``directory`` in, in the profiler's part only: the application may use the same braces."""
    end = list(command).index(_APPLICATION_FOLLOWS)
    own = (
        f"{directory}{word[len(DIRECTORY) :]}" if word.startswith(DIRECTORY) else word
        for word in command[:end]
    )
    return (*own, *command[end:])


def output_format_of(command: Sequence[str]) -> OutputFormat:
    """Which format a planned command asks for."""
    return OutputFormat(command[list(command).index("--output-format") + 1])


def _output(output: OutputFormat) -> tuple[str, ...]:
    return ("--output-format", output.value, "-d", DIRECTORY, "-o", _OUTPUT_NAME)
