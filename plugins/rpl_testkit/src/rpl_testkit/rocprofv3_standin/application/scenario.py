"""What the application is supposed to have done on the GPU, and what the profiler would record of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.rows import KernelRow, RocpdContents
from rpl_testkit.rocprofv3_standin.request.passes import Pass, kernel_filter
from rpl_testkit.synthetic_recording import application_model as model
from rpl_testkit.synthetic_recording.recording import Collection, ProcessIdentity, record


class ScenarioError(Exception):
    """The scenario file is missing or not understood."""


def _demo() -> model.Application:
    from rpl_testkit.synthetic_recording.demo_application import DEMO_APPLICATION

    return DEMO_APPLICATION


@frozen
class Scenario:
    """An application, the number of child processes that use the GPU too, and failures.

    `duration_ns` gives the time of each dispatch in turn; without it they vary as in `timeline`.
    """

    application: model.Application = attrs.field(factory=_demo)
    children: int = 0
    misbehaviour: str = ""
    duration_ns: Callable[[model.KernelModel], int] | None = None


def load_scenario(environment: Mapping[str, str]) -> Scenario:
    """Return the scenario that `RPL_STANDIN_SCENARIO` names, or the demo."""
    name = environment.get("RPL_STANDIN_SCENARIO")
    if not name:
        return Scenario()
    path = Path(name)
    try:
        if path.suffix == ".py":
            return _from_python(path)
        return _from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(f"scenario {path}: {type(error).__name__}: {error}") from error


def _from_python(path: Path) -> Scenario:
    import runpy

    names = runpy.run_path(str(path))
    return Scenario(names["APPLICATION"], names.get("CHILDREN", 0), names.get("MISBEHAVIOUR", ""))


def _from_json(data: dict[str, Any]) -> Scenario:
    application = data.get("application", "demo")
    return Scenario(
        _demo() if application == "demo" else _application(application),
        int(data.get("children", 0)),
        str(data.get("misbehaviour", "")),
    )


def _application(data: dict[str, Any]) -> model.Application:
    fields = {**data}
    kernels = tuple(kernel_model(kernel) for kernel in fields.pop("kernels"))
    steps = tuple(_step(step) for step in fields.pop("steps"))
    return model.Application(kernels=kernels, steps=steps, **fields)


def kernel_model(data: Mapping[str, Any]) -> model.KernelModel:
    """A kernel from its JSON form. TypeError and KeyError for what is missing or unknown."""
    fields = {"symbol": data["name"], **data}
    work = model.WorkModel(**fields.pop("work", {}))
    for axis in ("grid", "workgroup"):
        x, y, z = fields[axis]
        fields[axis] = (x, y, z)
    return model.KernelModel(work=work, **fields)


def _step(data: dict[str, Any]) -> model.Step:
    """Read one step; its first key says what it is and holds the main value."""
    fields = {**data}
    key = next(iter(fields))
    main = fields.pop(key)
    if key == "repeat":
        return model.Repeat(main, tuple(_step(step) for step in fields["steps"]))
    if key == "graph":
        return model.GraphLaunch(tuple(main), **fields)
    if key == "wait":
        return model.Wait(event=main, **fields)
    if key == "sync_device":
        return model.SyncDevice()
    kinds: dict[str, Any] = {
        "launch": model.Launch,
        "copy": model.Copy,
        "allocate": model.Allocate,
        "record": model.Record,
        "sync_stream": model.SyncStream,
        "sync_event": model.SyncEvent,
        "host_work_ns": model.HostWork,
    }
    step: model.Step = kinds[key](main, **fields)
    return step


# What the profiler would have recorded about each process of one pass.
#
# Knows how options shape the contents (naming, grouping, filters); times and values come from the scenario.


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
