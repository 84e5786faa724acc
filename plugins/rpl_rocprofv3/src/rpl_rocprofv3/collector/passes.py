"""Counters split into passes that the hardware can hold, each with its command line and its folder.

Every hardware block counts a limited number of events at a time; a set that exceeds it aborts the profiler
inside the first dispatch. Groups that only mean something together stay together. Counters that can take
the machine down are refused unless the user insists.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, UsageError
from rpl_core.files import make_directory, storage_error
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_rocprofv3.collector.tool import OutputFormat

if TYPE_CHECKING:
    from rpl_core.model.device import CounterMap

# Split a set of counters into passes that the hardware can hold.
#
# Every hardware block counts a limited number of events at a time; a set that exceeds it aborts the profiler
# inside the first dispatch. Groups that only mean something together stay together. Counters that can take
# the machine down are refused unless the user insists.

#: Counters of one unknown block per pass: the only number that cannot exceed the block's limit.
UNKNOWN_BLOCK_LIMIT = 1


@frozen
class RefusedCounter:
    """A counter that no pass will read, and why."""

    counter: str
    reason: str


@frozen
class PassPlan:
    """Counters per pass, in the order of collection, and the counters that were refused."""

    passes: tuple[tuple[str, ...], ...]
    refused: tuple[RefusedCounter, ...] = ()


def block_of(counter: str, counter_map: CounterMap) -> str | None:
    """The hardware block of a counter: its longest matching prefix, ``None`` when no prefix matches."""
    matching = [
        (len(prefix), block) for prefix, block in counter_map.block_prefixes if counter.startswith(prefix)
    ]
    return max(matching)[1] if matching else None


def plan_passes(
    counter_map: CounterMap, counters: Sequence[str] | None = None, allow_dangerous: bool = False
) -> PassPlan:
    """Fill passes first-fit with ``counters`` (default: the recommended set), same-pass groups first.

    Deterministic: equal arguments give equal passes. Repeated counters are read once.
    """
    wanted = tuple(dict.fromkeys(counter_map.recommended if counters is None else counters))
    refused = [] if allow_dangerous else _dangerous(wanted, counter_map)
    blocked = {one.counter for one in refused}
    units = _units([counter for counter in wanted if counter not in blocked], counter_map)
    passes: list[list[str]] = []
    loads: list[Counter[str]] = []
    for unit in units:
        load = Counter(block_of(counter, counter_map) or "" for counter in unit)
        overfull = _overfull(load, counter_map)
        if overfull is not None:
            refused.extend(RefusedCounter(counter, overfull) for counter in unit)
            continue
        _place(unit, load, passes, loads, counter_map)
    return PassPlan(tuple(_in_order(one, wanted) for one in passes), tuple(refused))


def _dangerous(wanted: Sequence[str], counter_map: CounterMap) -> list[RefusedCounter]:
    refused = []
    for counter in wanted:
        reasons = [reason for prefix, reason in counter_map.dangerous if counter.startswith(prefix)]
        if reasons:
            refused.append(RefusedCounter(counter, reasons[0]))
    return refused


def _units(wanted: Sequence[str], counter_map: CounterMap) -> list[tuple[str, ...]]:
    """What must be placed together: groups in the order of the map, then single counters."""
    left = list(wanted)
    units: list[tuple[str, ...]] = []
    for group in counter_map.same_pass:
        bases = {_base(counter) for counter in group}
        together = tuple(counter for counter in left if _base(counter) in bases)
        if together:
            units.append(together)
            left = [counter for counter in left if counter not in together]
    return units + [(counter,) for counter in left]


def _base(counter: str) -> str:
    return counter.removesuffix("_sum")


def _limit(block: str, counter_map: CounterMap) -> int:
    return counter_map.block_limits.get(block, UNKNOWN_BLOCK_LIMIT)


def _overfull(load: Counter[str], counter_map: CounterMap) -> str | None:
    for block, count in sorted(load.items()):
        limit = _limit(block, counter_map)
        if count > limit:
            return (
                f"{counted(count, 'counter')} must be read together, but block {block} holds {limit} per pass"
            )
    return None


def _place(
    unit: tuple[str, ...],
    load: Counter[str],
    passes: list[list[str]],
    loads: list[Counter[str]],
    counter_map: CounterMap,
) -> None:
    for one, used in zip(passes, loads, strict=True):
        if all(used[block] + count <= _limit(block, counter_map) for block, count in load.items()):
            one.extend(unit)
            used.update(load)
            return
    passes.append(list(unit))
    loads.append(Counter(load))


def _in_order(one: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    position = {counter: i for i, counter in enumerate(wanted)}
    return tuple(sorted(one, key=position.__getitem__))


# The exact rocprofv3 command lines (reference: docs/reference/formats.md, 4).

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


# The directory of one pass: empty before it, searched after it for recordings that hold anything.
#
# What they hold is the readers' business: a broken file is refused later, by its reader.

_SUFFIXES = {OutputFormat.ROCPD: (".db",), OutputFormat.CSV: (".csv",), OutputFormat.JSON: ("_results.json",)}
#: What rocprofv3 replaces in the names of directories: %key%, %h, $ENV{X}, %q{X}, {key}
#: (docs/reference/formats.md, 4.3).
_REPLACED = re.compile(r"%\w+%|%[hpjrs]|%q\{|\$ENV\{|%env\{|\{\w+\}")
_DISPATCH_TABLE = "rocpd_kernel_dispatch"
_COUNTER_TABLE = "rocpd_pmc_event"
_KERNEL_CSV = "kernel_trace.csv"
_COUNTER_CSV = "counter_collection.csv"
_LINE_LIMIT_BYTES = 1 << 20


def prepare_directory(directory: Path) -> None:
    """Make ``directory``, or raise ``UsageError`` if it can't hold exactly one recording.

    A file that is there already would be taken for the result of this pass.
    """
    if match := _REPLACED.search(str(directory)):
        raise UsageError(
            f"the path of the run directory holds {match[0]!r}, which rocprofv3 replaces by something else",
            next_step="choose another one with -o DIR",
        )
    make_directory(directory)
    try:
        occupied = any(directory.iterdir())
    except OSError as error:
        raise storage_error(directory, error) from error
    if occupied:
        raise UsageError(
            f"{directory} is not empty, and a recording of this pass could not be told from what is there",
            next_step="choose a fresh directory with -o DIR",
        )


def recorded_files(directory: Path, output: OutputFormat) -> tuple[Path, ...]:
    """Recordings anywhere below ``directory``, sorted. Links are not followed: they may lead out of it."""
    paths: list[Path] = []
    for folder, subfolders, names in os.walk(directory):
        subfolders.sort()
        for name in names:
            path = Path(folder) / name
            if name.endswith(_SUFFIXES[output]) and _is_regular(path):
                paths.append(path)
    return tuple(sorted(paths))


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def holds_dispatches(files: Sequence[Path]) -> bool | None:
    """``None`` for "can't tell"."""
    return _any_of(files, lambda path: _has_rows(path, _DISPATCH_TABLE, (_KERNEL_CSV, _COUNTER_CSV)))


def holds_counters(files: Sequence[Path]) -> bool | None:
    """``None`` for "can't tell"."""
    return _any_of(files, lambda path: _has_rows(path, _COUNTER_TABLE, (_COUNTER_CSV,)))


def _any_of(files: Sequence[Path], has: Callable[[Path], bool | None]) -> bool | None:
    answers = [has(path) for path in files]
    if any(answers):
        return True
    return None if None in answers else False


def _has_rows(path: Path, table: str, csv_names: tuple[str, ...]) -> bool | None:
    if path.suffix == ".json":
        return None  # a large file is not read twice: its reader tells
    if path.suffix == ".csv":
        return path.name.endswith(csv_names) and _has_second_line(path)
    return _has_row(path, table)


def _has_second_line(path: Path) -> bool | None:
    try:
        with path.open("rb") as stream:
            stream.readline(_LINE_LIMIT_BYTES)
            return bool(stream.readline(_LINE_LIMIT_BYTES).strip())
    except OSError:
        return None


def _has_row(path: Path, table: str) -> bool | None:
    from rpl_rocprofv3.database import Tables, open_database

    try:
        with open_database(path) as database:
            found = Tables(database.connection).get(table)
            if found is None:
                return None
            return next(found.rows(database.connection, ("id",)), None) is not None
    except BadDataError:
        return None
