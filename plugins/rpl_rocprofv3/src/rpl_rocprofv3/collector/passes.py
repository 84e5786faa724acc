"""Passes of rocprofv3: counters split into what the hardware can hold, command lines, folders, replay.

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
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files import make_directory, storage_error
from rpl_core.interfaces.collector import PlannedPass
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.run_directory import ARTIFACTS
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_rocprofv3.collector import OutputFormat
from rpl_rocprofv3.options import COLLECT_KERNEL, COLLECT_LAUNCHES, REPLAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.interfaces.collector import CollectRequest
    from rpl_core.interfaces.options import Options
    from rpl_core.model.device import CounterMap
    from rpl_rocprofv3.collector import ToolVersion

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
    blocked = {refusal.counter for refusal in refused}
    units = _units([counter for counter in wanted if counter not in blocked], counter_map)
    passes: list[list[str]] = []
    loads: list[Counter[str]] = []
    for unit in units:
        load = Counter(block_of(counter, counter_map) or "" for counter in unit)
        overfull = _overfull(load, counter_map)
        if overfull is not None:
            refused.extend(RefusedCounter(counter, overfull) for counter in unit)
            continue
        _add_to_first_fit(unit, load, passes, loads, counter_map)
    return PassPlan(tuple(_in_asked_order(names, wanted) for names in passes), tuple(refused))


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
        bases = {_without_sum(counter) for counter in group}
        together = tuple(counter for counter in left if _without_sum(counter) in bases)
        if together:
            units.append(together)
            left = [counter for counter in left if counter not in together]
    return units + [(counter,) for counter in left]


def _without_sum(counter: str) -> str:
    """A counter and its sum over all instances are read from the same events."""
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


def _add_to_first_fit(
    unit: tuple[str, ...],
    load: Counter[str],
    passes: list[list[str]],
    loads: list[Counter[str]],
    counter_map: CounterMap,
) -> None:
    for names, used in zip(passes, loads, strict=True):
        # Blocks count independently: a pass has room if each block that the unit needs has.
        if all(used[block] + count <= _limit(block, counter_map) for block, count in load.items()):
            names.extend(unit)
            used.update(load)
            return
    passes.append(list(unit))
    loads.append(Counter(load))


def _in_asked_order(names: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    position = {counter: i for i, counter in enumerate(wanted)}
    return tuple(sorted(names, key=position.__getitem__))


# Command lines, exactly as rocprofv3 takes them (reference: docs/reference/formats.md, 4).

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
    profiler = ("--pmc", *counters, *filters, *_output(output))
    return (str(executable), *profiler, _APPLICATION_FOLLOWS, *application)


def replay_command(
    executable: Path, application: Sequence[str], groups: Sequence[Sequence[str]], filters: Sequence[str]
) -> tuple[str, ...]:
    """All groups in one run: each launch is repeated once per group, its memory restored in between.

    JSON, because it alone says which pass a value is from (using-kernel-replay-rocprofv3.rst).
    """
    counters = (word for group in groups for word in ("--pmc", *group))
    mode = ("--replay-mode", "kernel", "--kernel-replay-beta-enabled")
    profiler = (*counters, *mode, *filters, *_output(OutputFormat.JSON))
    return (str(executable), *profiler, _APPLICATION_FOLLOWS, *application)


def rotation_command(
    executable: Path, output: OutputFormat, application: Sequence[str], filters: Sequence[str]
) -> tuple[str, ...]:
    """One run in which the groups of ``GROUPS_FILE`` take turns from launch to launch."""
    profiler = ("-i", f"{DIRECTORY}/{GROUPS_FILE}", *filters, *_output(output))
    return (str(executable), *profiler, _APPLICATION_FOLLOWS, *application)


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
    profiler = (
        f"{directory}{word[len(DIRECTORY) :]}" if word.startswith(DIRECTORY) else word
        for word in command[:end]
    )
    return (*profiler, *command[end:])


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
            rows = Tables(database.connection).get(table)
            if rows is None:
                return None
            return next(rows.rows(database.connection, ("id",)), None) is not None
    except BadDataError:
        return None


# How groups of counters that don't fit together are collected: a run for each, or one run for all.
#
# What kernel replay can and can't do: rocprofiler-sdk, how-to ``using-kernel-replay-rocprofv3.rst`` and API
# reference ``kernel_replay``, 2026. Rotation: ``using-rocprofv3.rst``, ``pmc_groups``.

REPLAY_LIMITS = (
    "kernel replay is a beta of AMD: every counted launch runs once per counter group, with the GPU's memory "
    "copied to the host and back in between. Not restored are managed, host and fine-grained memory and "
    "hipMallocAsync; asynchronous copies of other threads are not held back; HIP graphs and submissions of "
    "several packets are not replayed. It is for one process, unsafe for kernels of collectives, and not "
    "together with thread traces or PC sampling; a queue that does not drain in 60 s aborts the application"
)
ROTATION_LIMITS = (
    "counter groups take turns from launch to launch, so no launch has all counters: figures join different "
    "launches of a kernel and are estimates, right only where its launches are alike"
)
#: Launches with one group before the next one follows: 1 spreads the groups over a kernel's launches best.
_ROTATION_INTERVAL = 1


class GroupMode(str, Enum):
    SEPARATE = "off"  # one run of the application for each group
    KERNEL = "kernel"
    ROTATE = "rotate"


def announced(options: Options) -> str | None:
    """The limits of the mode that was asked for; ``auto`` is told when it has chosen, too."""
    mode = options[REPLAY]
    if mode == "off":
        return None
    if mode == "rotate":
        return ROTATION_LIMITS
    where = "where this rocprofv3 can, auto takes kernel replay: " if mode == "auto" else ""
    return f"{where}{REPLAY_LIMITS}"


def refuse_without_counters(request: CollectRequest) -> None:
    """Raise ``UsageError`` for options about counters where none are collected."""
    if request.counters or request.counters_follow:
        return
    given = [option.name for option in (COLLECT_KERNEL, COLLECT_LAUNCHES) if request.options[option]]
    given += [REPLAY.name] if request.options[REPLAY] != "off" else []
    if given:
        raise UsageError(
            f"--{given[0]} is about counters, and none are collected", next_step="add --roofline"
        )


def chosen_mode(request: CollectRequest, groups: int, can_replay: Callable[[], bool]) -> GroupMode:
    """The mode for ``groups`` groups. Raises ``MissingError`` for a replay that is not offered."""
    asked = request.options[REPLAY]
    if asked == "kernel" and request.counters_follow and not can_replay():
        raise _no_replay()  # told before the timing runs
    if groups < 2 or asked == "off":
        return GroupMode.SEPARATE
    if asked == "rotate":
        return GroupMode.ROTATE
    if can_replay():
        return GroupMode.KERNEL
    if asked == "auto":
        return GroupMode.SEPARATE
    raise _no_replay()


def _no_replay() -> MissingError:
    return MissingError(
        "this rocprofv3 has no --replay-mode",
        cause="kernel replay came with rocprofiler-sdk 1.4.1 (ROCm 10.0.1)",
        next_step="leave out --replay kernel, or use --replay rotate for launches that are alike",
    )


def mode_findings(request: CollectRequest, mode: GroupMode, groups: int) -> tuple[Diagnostic, ...]:
    """What was chosen and what it costs."""
    asked = request.options[REPLAY]
    if asked == "off":
        return ()
    shown = counted(groups, "counter group")
    if mode is GroupMode.KERNEL:
        fact = (
            f"{shown} in one run by kernel replay: each counted launch runs once per group, and costs a copy "
            "of the GPU's memory to the host and back between them"
        )
    elif mode is GroupMode.ROTATE:
        fact = f"{shown} in one run, taking turns from launch to launch: figures are estimates"
    elif groups < 2:
        fact = f"{shown}: one run holds all counters, so nothing is replayed"
    else:
        fact = (
            f"{shown} in as many runs of the application: this rocprofv3 has no --replay-mode, which came "
            "with rocprofiler-sdk 1.4.1 (ROCm 10.0.1)"
        )
    return (Diagnostic("collect.counter_groups", fact, severity=Severity.INFO),)


def counter_passes(
    request: CollectRequest,
    executable: Path,
    version: ToolVersion,
    groups: Sequence[tuple[str, ...]],
    mode: GroupMode,
) -> list[PlannedPass]:
    """The passes that read ``groups``."""
    filters = filter_options(request.options[COLLECT_KERNEL], request.options[COLLECT_LAUNCHES])
    every = tuple(dict.fromkeys(counter for group in groups for counter in group))
    application, output = request.command, version.output_format

    def planned(name: str, command: tuple[str, ...], counters: tuple[str, ...]) -> PlannedPass:
        return PlannedPass(
            name=name,
            role=TraceRole.COUNTERS,
            directory=f"{ARTIFACTS}/{name}",
            command=command,
            counters=counters,
            time_limit_s=request.time_limit_s,
            inputs=((GROUPS_FILE, rotation_input(groups, _ROTATION_INTERVAL)),) if name == "rotation" else (),
        )

    if mode is GroupMode.KERNEL:
        return [planned("replay", replay_command(executable, application, groups, filters), every)]
    if mode is GroupMode.ROTATE:
        return [planned("rotation", rotation_command(executable, output, application, filters), every)]
    return [
        planned(f"pass_{number}", counter_command(executable, output, application, group, filters), group)
        for number, group in enumerate(groups, start=1)
    ]


# What rocprofiler-sdk says about launches that it did not replay.

_OUTCOME = re.compile(r"\[kernel-replay\] dispatch_id=(?P<id>\d+) outcome=declined reason=(?P<reason>\w+)")
#: Told once per run or without a launch, behind "kernel replay": what is said, and what it means.
_WARNINGS = (
    ("graph", "launches of HIP graphs were not replayed"),
    ("multi-?(?:packet|dispatch)", "submissions of several packets were not replayed"),
    ("snapshot (?:capture )?failed", "memory of launches could not be copied, so they ran once"),
    ("virtual-memory", "memory that is not restored is in use (hipMallocAsync, hipMemMap)"),
    ("(?:did not drain|drain stuck)", "queues did not drain in time"),
)
#: The application's output mixes with the log: a line must be one of the library's.
_PATTERNS = tuple(
    (re.compile(rf"(?i)^[WEF]\d.*\bkernel[ _-]replay\b.*\b{said}"), meaning) for said, meaning in _WARNINGS
)
_MOST_NOTED = 100_000


class ReplayWatch:
    """A line sink that notes launches that were not replayed, by id, and what was said of the whole run."""

    def __init__(self) -> None:
        self.declined: dict[int, str] = {}
        self.said: dict[str, int] = {}

    def __call__(self, line: str) -> None:
        if "replay" not in line:
            return
        if match := _OUTCOME.search(line):
            if len(self.declined) < _MOST_NOTED:
                self.declined[int(match["id"])] = match["reason"].replace("_", " ")
            return
        for pattern, meaning in _PATTERNS:
            if pattern.search(line):
                self.said[meaning] = self.said.get(meaning, 0) + 1
                return


def replay_findings(
    planned: PlannedPass, watch: ReplayWatch, files: Sequence[Path]
) -> tuple[Diagnostic, ...]:
    """One warning per kernel whose launches were not replayed, and one per thing said of the whole run."""
    by_kernel: dict[tuple[str, str], int] = {}
    names = kernels_of(files, watch.declined) if watch.declined else {}
    for dispatch, reason in watch.declined.items():
        key = names.get(dispatch, "kernels without a record"), reason
        by_kernel[key] = by_kernel.get(key, 0) + 1
    return (
        *(
            Diagnostic(
                "collect.not_replayed",
                f"launches of {kernel} were not replayed ({reason}), so most counter groups lack them",
                remedy="count these with --replay off",
                where=planned.name,
                count=count,
            )
            for (kernel, reason), count in sorted(by_kernel.items())
        ),
        *(
            Diagnostic("collect.replay_warning", f"rocprofv3: {text}", where=planned.name, count=count)
            for text, count in sorted(watch.said.items())
        ),
    )


def kernels_of(files: Sequence[Path], dispatches: Mapping[int, object]) -> dict[int, str]:
    """Kernel names of these dispatches in results JSON; those of a damaged file are missing."""
    from rpl_rocprofv3.readers.columns import display_name
    from rpl_rocprofv3.readers.json import entries, number_at, text_at

    names: dict[int, str] = {}
    for path in files:
        kernels: dict[int, str] = {}
        kernel_of_dispatch: dict[int, int] = {}
        try:
            for section, value in entries(path):
                if section == "kernel_symbols":
                    name = text_at(value, "formatted_kernel_name") or text_at(value, "kernel_name")
                    kernels[number_at(value, "kernel_id")] = display_name(name or "")
                elif section == "callback_records.counter_collection":
                    info = ("dispatch_data", "dispatch_info")
                    dispatch = number_at(value, *info, "dispatch_id")
                    if dispatch in dispatches:
                        kernel_of_dispatch[dispatch] = number_at(value, *info, "kernel_id")
        except BadDataError:
            continue  # its reader refuses it, too
        names |= {
            dispatch: kernels[kernel]
            for dispatch, kernel in kernel_of_dispatch.items()
            if kernels.get(kernel)
        }
    return names
