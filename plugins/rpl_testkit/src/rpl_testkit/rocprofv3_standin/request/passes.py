"""Which passes a command line means, and where each one writes.

One pass from the command line writes into -d itself; jobs of an input file and repeated --pmc get
sub-folders `pass_N` (`pmc_N` for text files), as described in docs/reference/formats.md, 4.4.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen
from rpl_testkit.rocprofv3_standin.request.arguments import expand_aggregates, split_counters
from rpl_testkit.rocprofv3_standin.request.input_file import (
    InputFileError,
    merge_options,
    read_input_file,
)
from rpl_testkit.rocprofv3_standin.request.pc_sampling import pc_sampling_of
from rpl_testkit.rocprofv3_standin.request.replay import replay_wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_testkit.rocprofv3_standin.emulated_rocm import EmulatedRocm
    from rpl_testkit.rocprofv3_standin.request.input_file import InputJob
    from rpl_testkit.rocprofv3_standin.request.pc_sampling import PcSampling

__all__ = ["Pass", "plan_passes"]


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
