"""What the profiler would have recorded about each process of one pass.

Knows how options shape the contents (naming, grouping, filters); times and values come from the scenario.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import attrs

from rpl_testkit.rocprofv3_standin.request.kernel_filter import kernel_filter
from rpl_testkit.synthetic_recording.recording import Collection, ProcessIdentity, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rpl_testkit.rocpd_writer.rows import KernelRow, RocpdContents
    from rpl_testkit.rocprofv3_standin.application.scenario import Scenario
    from rpl_testkit.rocprofv3_standin.request.passes import Pass

__all__ = ["record_processes"]


def record_processes(
    one: Pass, counters: tuple[str, ...], scenario: Scenario, pid: int, command: Sequence[str], seed: str
) -> Iterator[RocpdContents]:
    """Yield the contents of every process: children first, the application itself last."""
    processes = scenario.children + 1
    for number in reversed(range(processes)):
        identity = ProcessIdentity(
            pid=pid + number,
            ppid=pid if number else os.getppid(),
            command=" ".join(command),
            extdata=_output_config(one),
        )
        contents = record(
            scenario.application,
            identity,
            _collection(one, counters, _display_names(one.options, scenario)),
            seed=f"{seed}/{number}" if number else seed,
            gpu=number,
            gpus=processes,
            duration_ns=scenario.duration_ns,
        )
        yield _shape(contents, one.options)


def _collection(one: Pass, counters: tuple[str, ...], shown: Mapping[str, str]) -> Collection:
    selects = kernel_filter(one.options)
    return Collection(
        kernels="kernel_trace" in one.traces,
        copies="memory_copy_trace" in one.traces,
        hip_api="hip_runtime_trace" in one.traces,
        allocations="memory_allocation_trace" in one.traces,
        counters=counters,
        selects=lambda name, launch: selects(shown[name], launch),
    )


def _display_names(options: Mapping[str, Any], scenario: Scenario) -> dict[str, str]:
    display = _display(options)
    return {kernel.name: display(kernel.name, kernel.symbol) for kernel in scenario.application.kernels}


def _display(options: Mapping[str, Any]) -> Callable[[str, str], str]:
    if options.get("mangled_kernels"):
        return lambda _name, symbol: f"{symbol}.kd"
    if options.get("truncate_kernels"):
        return lambda name, _symbol: name.split("(")[0].split("<")[0].split(" ")[-1]
    return lambda name, _symbol: name


def _shape(contents: RocpdContents, options: Mapping[str, Any]) -> RocpdContents:
    display = _display(options)

    def named(kernel: KernelRow) -> KernelRow:
        return attrs.evolve(kernel, name=display(kernel.name, kernel.symbol))

    contents = attrs.evolve(contents, kernels=tuple(map(named, contents.kernels)))
    if not options.get("group_by_queue"):
        return contents
    # Grouping by queue replaces every stream id by 0 (docs/reference/formats.md, trap 6).
    return attrs.evolve(
        contents,
        dispatches=[attrs.evolve(row, stream_id=0) for row in contents.dispatches],
        copies=[attrs.evolve(row, stream_id=0) for row in contents.copies],
        streams=(),
    )


def _output_config(one: Pass) -> dict[str, Any]:
    return {
        "output_path": one.directory,
        "raw_output_path": one.directory,
        "raw_output_file": one.name or "%hostname%/%pid%",
        **{f"{name}_output": name in one.formats for name in ("csv", "json", "pftrace", "otf2", "rocpd")},
        "kernel_rename": bool(one.options.get("kernel_rename")),
        "group_by_queue": bool(one.options.get("group_by_queue")),
    }
