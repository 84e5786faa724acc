"""How groups of counters that don't fit together are collected: a run for each, or one run for all.

What kernel replay can and can't do: rocprofiler-sdk, how-to ``using-kernel-replay-rocprofv3.rst`` and API
reference ``kernel_replay``, 2026. Rotation: ``using-rocprofv3.rst``, ``pmc_groups``.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.interfaces.collector import PlannedPass
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.run_directory import ARTIFACTS
from rpl_core.text import counted
from rpl_rocprofv3.collector.passes import (
    GROUPS_FILE,
    counter_command,
    filter_options,
    replay_command,
    rotation_command,
    rotation_input,
)
from rpl_rocprofv3.options import COLLECT_KERNEL, COLLECT_LAUNCHES, REPLAY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rpl_core.interfaces.collector import CollectRequest
    from rpl_core.interfaces.options import Options
    from rpl_rocprofv3.collector.tool import ToolVersion

__all__ = [
    *("GroupMode", "ReplayWatch", "announced", "chosen_mode", "counter_passes", "mode_findings"),
    *("refuse_without_counters", "replay_findings"),
]

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
        found: dict[int, int] = {}
        try:
            for section, value in entries(path):
                if section == "kernel_symbols":
                    name = text_at(value, "formatted_kernel_name") or text_at(value, "kernel_name")
                    kernels[number_at(value, "kernel_id")] = display_name(name or "")
                elif section == "callback_records.counter_collection":
                    info = ("dispatch_data", "dispatch_info")
                    dispatch = number_at(value, *info, "dispatch_id")
                    if dispatch in dispatches:
                        found[dispatch] = number_at(value, *info, "kernel_id")
        except BadDataError:
            continue  # its reader refuses it, too
        names |= {dispatch: kernels[kernel] for dispatch, kernel in found.items() if kernels.get(kernel)}
    return names
