"""PC sampling on the command line: the options together, and what the GPU of the stand-in offers.

Words of refusals are those of rocprofv3.py and of its tool library (rocprofiler-sdk 1.0 to 1.4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rpl_core.values import frozen
from rpl_testkit.rocprofv3_standin.command_line import (
    EmulatedRocm,
    InputFileError,
    InputJob,
    expand_aggregates,
    merge_options,
    read_input_file,
    split_counters,
)
from rpl_testkit.synthetic_recording.mi300x import (
    available_counters,
    base_counters,
    counter_block,
    counter_definition,
)

BETA_VARIABLE: Final = "ROCPROFILER_PC_SAMPLING_BETA_ENABLED"
#: As ``rocprofv3 -L`` lists them for gfx942: unit, smallest and largest interval.
_OFFERED: Final = {
    "stochastic": ("cycles", 256, 1 << 31),
    "host_trap": ("time", 1, (1 << 64) - 1),
}


class PcSamplingError(Exception):
    """The options don't go together; the text is what the profiler prints after `Fatal error:`."""


@frozen
class PcSampling:
    """A request whose options go together."""

    method: str
    unit: str
    interval: int

    @property
    def is_offered(self) -> bool:
        unit, smallest, largest = _OFFERED[self.method]
        return self.unit == unit and smallest <= self.interval <= largest

    @property
    def is_configurable(self) -> bool:
        """The hardware counts cycles by a power of two."""
        return self.method != "stochastic" or not self.interval & (self.interval - 1)


def pc_sampling_of(options: Mapping[str, Any], environment: Mapping[str, str]) -> PcSampling | None:
    """The request, or None. PcSamplingError as the driver script refuses it."""
    method, unit, interval = (options.get(f"pc_sampling_{key}") for key in ("method", "unit", "interval"))
    if not (method or unit or interval):
        return None
    if not options.get("pc_sampling_beta_enabled") and BETA_VARIABLE not in environment:
        raise PcSamplingError(
            "PC sampling unavailable. The feature is implicitly disabled. To enable it, use "
            f"--pc-sampling-beta-enable option or set {BETA_VARIABLE}=ON in the environment"
        )
    if not (method and unit and interval):
        raise PcSamplingError("All three PC sampling configurations need to be set")
    if interval <= 0:
        raise PcSamplingError("PC sampling interval must be a positive number.")
    return PcSampling(method, unit, interval)


# Kernel replay on the command line: what it needs and what it does not go with.
#
# Words of refusals are those of rocprofv3.py of rocprofiler-sdk 1.4.1.


class ReplayError(Exception):
    """The options don't go together; the text is what the profiler prints after `Fatal error:`."""


def replay_wanted(
    options: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], environment: Mapping[str, str]
) -> bool:
    """Whether launches are replayed. ReplayError where that can't be."""
    if options.get("replay_mode") != "kernel":
        return False
    if not options.get("kernel_replay_beta_enabled"):
        raise ReplayError(
            "--replay-mode kernel requires acknowledgement that kernel replay is a beta "
            "feature via --kernel-replay-beta-enabled"
        )
    if not options.get("pmc") and not any(job.get("pmc") or job.get("pmc_groups") for job in jobs):
        raise ReplayError(
            "--replay-mode kernel requires counter collection (--pmc, input-file pmc, or pmc_groups)"
        )
    conflicts = ["--att"] if options.get("advanced_thread_trace") else []
    if options.get("pc_sampling_beta_enabled") or BETA_VARIABLE in environment:
        conflicts.append("PC sampling")
    if conflicts:
        raise ReplayError(
            f"--replay-mode kernel cannot be combined with {' or '.join(conflicts)}. Kernel replay only "
            "varies counter groups from one pass to the next; every other service stays on for all of the "
            "passes and would report each kernel once per pass. Collect them in a separate run."
        )
    return True


# Which passes a request means, whether counters fit, which launches are kept, and the answer to -L.


@frozen
class Pass:
    """One run of the application: its options, traces, counters, formats and output place."""

    options: Mapping[str, Any]
    traces: frozenset[str]
    counters: tuple[str, ...]
    formats: tuple[str, ...]
    directory: str
    name: str | None
    pc_sampling: PcSampling | None = None
    groups: tuple[tuple[str, ...], ...] = ()  # of ``counters``, more than one: all in this run
    group_interval: int = 1
    replay: bool = False

    @property
    def thread_trace(self) -> bool:
        return bool(self.options.get("advanced_thread_trace"))


def plan_passes(
    options: dict[str, Any], release: EmulatedRocm, environment: Mapping[str, str]
) -> tuple[Pass, ...]:
    """The passes in order. InputFileError, RuntimeError, PcSamplingError and ReplayError as in reality."""
    jobs = read_input_file(Path(options["input"])) if "input" in options else []
    replay = replay_wanted(options, [job for job, _prefix in jobs], environment)
    if jobs:
        return tuple(_of_job(options, jobs, number, release, environment) for number in range(len(jobs)))
    given = options.get("pmc") or []
    sets = given if given and isinstance(given[0], list) else [given]
    if replay:
        groups = tuple(_counters(names) for names in sets)
        return (_make_pass(options, _united(groups), "", release, environment, groups=groups, replay=True),)
    return tuple(
        _make_pass(options, _counters(names), f"pass_{i}" if len(sets) > 1 else "", release, environment)
        for i, names in enumerate(sets, 1)
    )


def _of_job(
    options: dict[str, Any],
    jobs: list[InputJob],
    number: int,
    release: EmulatedRocm,
    environment: Mapping[str, str],
) -> Pass:
    job, prefix = jobs[number]
    merged = merge_options(options, job)
    if not job.get("pmc_groups"):
        folder = f"{prefix}{number + 1}" if len(jobs) > 1 or job.get("pmc") else ""
        return _make_pass(
            merged, _counters(job.get("pmc") or options.get("pmc")), folder, release, environment
        )
    if merged.get("pmc"):
        raise InputFileError("Cannot specify both --pmc and (input file) pmc_groups")
    groups = tuple(_counters(group) for group in job["pmc_groups"])
    return _make_pass(
        merged,
        _united(groups),
        "",
        release,
        environment,
        groups=groups,
        group_interval=int(job.get("pmc_group_interval") or 1),
        replay=options.get("replay_mode") == "kernel",
    )


def _united(groups: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))


def _counters(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    return split_counters([value] if isinstance(value, str) else value)


def _make_pass(
    options: dict[str, Any],
    counters: tuple[str, ...],
    sub_directory: str,
    release: EmulatedRocm,
    environment: Mapping[str, str],
    **several: Any,
) -> Pass:
    base = options.get("output_directory") or str(Path.cwd())
    chosen = options.get("output_format") or [release.default_format]
    # The variable is extended, not replaced: callers that do not clean it get more formats.
    inherited = environment.get("ROCPROF_OUTPUT_FORMAT", "").lower().replace(",", " ").split()
    return Pass(
        options=options,
        traces=frozenset(expand_aggregates(options)),
        counters=counters,
        formats=tuple(dict.fromkeys([*inherited, *([chosen] if isinstance(chosen, str) else chosen)])),
        directory=str(Path(base) / sub_directory) if sub_directory else base,
        name=options.get("output_file"),
        pc_sampling=pc_sampling_of(options, environment),
        **several,
    )


# How many counters a pass can hold: limits per hardware block (docs/reference/counters.md, 1.1).

#: gfx9 counters per block and pass; SQC is part of SQ.
PASS_LIMITS: Final = {
    "SQ": 8,
    "TCC": 4,
    "TCP": 4,
    "TA": 2,
    "TD": 2,
    "TCA": 4,
    "SPI": 6,
    "CPC": 2,
    "CPF": 2,
    "GRBM": 2,
    "GDS": 4,
}


def overfull_blocks(counters: Iterable[str]) -> tuple[str, ...]:
    """Return the blocks that `counters` ask too much of, sorted; derived counters count their bases."""
    needed = {base for name in counters for base in base_counters(name)}
    blocks = [counter_block(name) for name in needed]
    return tuple(sorted(block for block in set(blocks) if blocks.count(block) > PASS_LIMITS[block]))


# Which launches a counter run keeps: --kernel-include-regex, -exclude-regex and -iteration-range.
#
# Filters act on the display name and on counters only, never on the kernel trace
# (docs/reference/formats.md, 4.2).


def kernel_filter(options: Mapping[str, Any]) -> Callable[[str, int], bool]:
    """Return `selects(kernel name, n-th launch of it from 1)`. ValueError for a bad range."""
    include = re.compile(options.get("kernel_include_regex") or "")
    pattern = options.get("kernel_exclude_regex")
    exclude = re.compile(pattern) if pattern else None
    wanted = _iterations(options.get("kernel_iteration_range") or [])

    def selects(name: str, launch: int) -> bool:
        if not include.search(name) or (exclude and exclude.search(name)):
            return False
        return not wanted or launch in wanted

    return selects


def _iterations(ranges: Sequence[str]) -> set[int]:
    wanted: set[int] = set()
    for token in re.split(r"[\[\], ]+", " ".join(ranges)):
        if not token:
            continue
        first, _, last = token.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise ValueError(f"invalid iteration range {token!r}")
        wanted.update(range(int(first), int(last or first) + 1))
    return wanted


# The answer to -L: every counter of the synthetic device, in the layout of rocprofv3-avail.


def list_available() -> str:
    """Return the text for stdout."""
    lines = [f"{'GPU':30}:\t0", f"{'Name':30}:\tgfx942"]
    for name in available_counters():
        definition = counter_definition(name, 0)
        lines += [
            f"{'Counter_Name':20}:\t{name}",
            f"{'Description':20}:\t{definition.description}",
            f"{'Expression':20}:\t{definition.expression}"
            if definition.is_derived
            else f"{'Block':20}:\t{definition.block}",
            "",
        ]
    return "\n".join(lines)
