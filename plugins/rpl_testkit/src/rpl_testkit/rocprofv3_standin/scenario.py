"""What the application is supposed to have done on the GPU, and what the profiler would record of it."""

from __future__ import annotations

import fcntl
import json
import math
import mmap
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import attrs

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.rows import KernelRow, RocpdContents
from rpl_testkit.rocprofv3_standin.passes import Pass, kernel_filter
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
            import runpy

            names = runpy.run_path(str(path))
            return Scenario(names["APPLICATION"], names.get("CHILDREN", 0), names.get("MISBEHAVIOUR", ""))
        data = json.loads(path.read_text(encoding="utf-8"))
        application = data.get("application", "demo")
        return Scenario(
            _demo() if application == "demo" else _described_application(application),
            int(data.get("children", 0)),
            str(data.get("misbehaviour", "")),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(f"scenario {path}: {type(error).__name__}: {error}") from error


def _described_application(data: dict[str, Any]) -> model.Application:
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


# A declared timing model: what the GPU would have taken, with noise and drift, for each program.

_SECTION: Final = b".hip_fatbin"
_BUNDLE: Final = b"__CLANG_OFFLOAD_BUNDLE__"  # a file for ``hipModuleLoad``
#: ELF64, little-endian (System V ABI): e_shoff and e_shentsize, e_shnum, e_shstrndx; fields of Elf64_Shdr.
_MAGIC: Final = b"\x7fELF\x02\x01"
_TABLE_OFFSET: Final = struct.Struct("<Q")
_TABLE_SHAPE: Final = struct.Struct("<HHH")
_HEADER: Final = struct.Struct("<IIQQQQ")


def embedded_source(command: Sequence[str]) -> bytes | None:
    """The sources in the first file that `command` names and that has some; None when no word names such."""
    for word in command:
        program = shutil.which(word) if word == command[0] else word
        if program and Path(program).is_file():
            source = _source_of(Path(program))
            if source is not None:
                return source
    return None


def _source_of(path: Path) -> bytes | None:
    from rpl_testkit.hipcc_standin import sources_in

    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            section = data[:] if data[: len(_BUNDLE)] == _BUNDLE else b""
            if data[: len(_MAGIC)] == _MAGIC:
                section = next((content for name, content in _sections(data) if name == _SECTION), b"")
            return b"\0".join(sources_in(section)) or None
    except (OSError, ValueError, struct.error):
        return None  # unreadable, empty or cut off: not a program of the stand-in


def _sections(data: mmap.mmap) -> Iterator[tuple[bytes, bytes]]:
    (table,) = _TABLE_OFFSET.unpack_from(data, 0x28)
    size, count, names_at = _TABLE_SHAPE.unpack_from(data, 0x3A)
    headers = [_HEADER.unpack_from(data, table + size * i) for i in range(count)]
    names = headers[names_at][4] if count else 0
    for name, _kind, _flags, _address, offset, length in headers:
        begin = names + name
        yield data[begin : data.find(b"\0", begin)], data[offset : offset + length]


# The model.


@frozen
class _Rule:
    source_matches: str = ""
    command_matches: str = ""
    kernel: str | None = None
    factor: float = 1.0
    hbm_factor: float = 1.0

    def applies(self, source: str, command: str, kernel: str) -> bool:
        fits = re.search(self.source_matches, source) and re.search(self.command_matches, command)
        return self.kernel in (None, kernel) and fits is not None


def _rules(entries: Iterable[Mapping[str, Any]]) -> tuple[_Rule, ...]:
    return tuple(_Rule(**entry) for entry in entries)


@frozen
class _TimingModel:
    kernels: tuple[Mapping[str, Any], ...] = attrs.field(default=(), converter=tuple)
    cv: float = 0.0
    dispatch_cv: float = 0.0
    drift: float = 0.0
    outliers: float = 0.0
    outlier_factor: float = 1.3
    build_offset: float = 0.0
    speed: tuple[_Rule, ...] = attrs.field(default=(), converter=_rules)
    seed: int = 0
    state: str | None = None


def with_timing_model(scenario: Scenario, environment: Mapping[str, str], command: Sequence[str]) -> Scenario:
    """`scenario` with the application and times of the declared model; unchanged when none is declared.

    Counts one process run. ScenarioError when the file is missing or not understood.
    """
    name = environment.get("RPL_STANDIN_TIMING_MODEL")
    if not name:
        return scenario
    path = Path(name)
    try:
        declared = _TimingModel(**json.loads(path.read_text(encoding="utf-8")))
        application = _declared_application(declared) if declared.kernels else scenario.application
        source = (embedded_source(command) or b"").decode("utf-8", "replace")
        words = " ".join(command)
        times = _Times(declared, source, words, *_next_run(declared, Path(declared.state or f"{name}.state")))
        return attrs.evolve(
            scenario,
            application=attrs.evolve(application, kernels=tuple(map(times.moved, application.kernels))),
            duration_ns=times.duration_ns,
        )
    except (OSError, ValueError, KeyError, TypeError, re.error) as error:
        raise ScenarioError(f"timing model {path}: {type(error).__name__}: {error}") from error


def _declared_application(declared: _TimingModel) -> model.Application:
    kernels: list[model.KernelModel] = []
    launches: list[tuple[int, int, model.Launch]] = []
    for entry in declared.kernels:
        fields = {"grid": (65536, 1, 1), "workgroup": (256, 1, 1), **entry}
        times, stream = int(fields.pop("launches", 1)), int(fields.pop("stream", 0))
        kernels.append(kernel_model(fields))
        launches += [(turn, len(kernels), model.Launch(entry["name"], stream)) for turn in range(times)]
    turns = tuple(launch for _turn, _kernel, launch in sorted(launches, key=lambda item: item[:2]))
    steps: tuple[model.Step, ...] = (
        model.Allocate(1 << 20),
        model.Copy("HtoD", 1 << 20, blocking=True),
        *turns,
        model.SyncDevice(),
    )
    streams = max(launch.stream for launch in turns) if turns else 0
    return model.Application(name="declared", kernels=tuple(kernels), steps=steps, streams=streams)


def _next_run(declared: _TimingModel, state: Path) -> tuple[int, float]:
    """Number of this process run, from 1, and the level of the walk (a logarithm)."""
    with state.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = json.loads(file.read() or '{"runs": 0, "level": 0.0}')
        number = before["runs"] + 1
        step = Random(f"{declared.seed}/walk/{number}").gauss(0.0, declared.drift * declared.cv)
        level = before["level"] + step
        file.truncate(0)
        file.write(json.dumps({"runs": number, "level": level}))
    return number, level


class _Times:
    """The times of one process run."""

    def __init__(self, declared: _TimingModel, source: str, command: str, number: int, level: float) -> None:
        self._declared = declared
        self._source, self._command = source, command
        self._random = Random(f"{declared.seed}/run/{number}")
        slow = self._random.random() < declared.outliers
        self._common = math.exp(level + self._build_offset()) * (declared.outlier_factor if slow else 1.0)
        self._factors: dict[str, float] = {}

    def _build_offset(self) -> float:
        if not self._source or not self._declared.build_offset:
            return 0.0
        return Random(f"{self._declared.seed}/build/{self._source}").gauss(0.0, self._declared.build_offset)

    def duration_ns(self, kernel: model.KernelModel) -> int:
        """The time of the next dispatch of `kernel`, at least 1."""
        if kernel.name not in self._factors:
            noise = math.exp(self._random.gauss(0.0, self._declared.cv))
            self._factors[kernel.name] = self._common * noise * self._product(kernel.name, "factor")
        jitter = math.exp(self._random.gauss(0.0, self._declared.dispatch_cv))
        return max(1, round(kernel.nominal_ns * self._factors[kernel.name] * jitter))

    def moved(self, kernel: model.KernelModel) -> model.KernelModel:
        """`kernel` with the memory traffic that the rules give it."""
        factor = self._product(kernel.name, "hbm_factor")
        work = attrs.evolve(
            kernel.work,
            read_bytes=round(kernel.work.read_bytes * factor),
            write_bytes=round(kernel.work.write_bytes * factor),
        )
        return attrs.evolve(kernel, work=work)

    def _product(self, kernel: str, field: str) -> float:
        rules = (rule for rule in self._declared.speed if rule.applies(self._source, self._command, kernel))
        return math.prod((float(getattr(rule, field)) for rule in rules), start=1.0)
