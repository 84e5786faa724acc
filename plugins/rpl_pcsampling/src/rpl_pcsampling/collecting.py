"""One more run of the application under rocprofv3, which samples program counters."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.files import make_directory, parse_json, read_regular, write_atomic
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.process import (
    ApplicationExitError,
    ProcessRequest,
    process_findings,
    require_program,
    run_command,
)
from rpl_core.values import frozen
from rpl_pcsampling.options import PC_INTERVAL, PC_SAMPLING, PC_TIMEOUT
from rpl_pcsampling.reading import holds_samples
from rpl_pcsampling.samples import Method
from rpl_rocprofv3.collector import profiling_environment, require_rocprofv3
from rpl_rocprofv3.collector.passes import prepare_directory, with_directory
from rpl_rocprofv3.options import ROCPROF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rpl_core.interfaces.collector import CollectRequest, FollowUpRequest, LineSink
    from rpl_core.interfaces.options import Options

# What a pass was asked to sample, written beside its files: rocprofv3 does not write the interval down.

STATED = "rpl_pc_sampling.json"
_LARGEST_BYTES = 4096


def write_stated(directory: Path, method: str, unit: str, interval: int) -> Path:
    """Raises ``OSError`` as any writing."""
    path = directory / STATED
    write_atomic(path, json.dumps({"method": method, "unit": unit, "interval": interval}) + "\n")
    return path


def stated_beside(path: Path, files: Iterable[Path]) -> list[Path]:
    """The statement in the folder of ``path``, if it is among ``files``."""
    return [other for other in files if other.name == STATED and other.parent == path.parent]


def read_interval(files: Iterable[Path]) -> int | None:
    """The interval that a statement among ``files`` names; ``None`` without one, or for a damaged one."""
    for path in files:
        if path.name == STATED:
            try:
                content = parse_json(read_regular(path, _LARGEST_BYTES), path)
            except RplError:
                return None
            interval = content.get("interval") if isinstance(content, dict) else None
            return interval if type(interval) is int and interval > 0 else None
    return None


# What may be asked of rocprofv3's PC sampling, on which GPUs, and what AMD says about the risk.
#
# Sources: rocprofiler-sdk, how-to ``using-pc-sampling.rst`` (supported GPUs, units, intervals) and API
# reference ``pc_sampling.rst`` (risk acknowledgement), both of 2026.

#: The instruction sets of AMD's table, and what they can do; later ones of the family are taken for able.
_HOST_TRAP_ONLY = ("gfx90a",)
_BOTH = ("gfx942", "gfx950")
_ABLE_FAMILY = re.compile(r"gfx9[0-9a-f]{2,3}")
_SMALLEST_CYCLES, _LARGEST_CYCLES = 256, 1 << 31
#: Of AMD's example; and chosen: AMD's example of 1 us interrupts every wave a million times a second.
_DEFAULT_CYCLES, _DEFAULT_US = 1 << 20, 100

RISK = (
    "PC sampling is a beta of AMD, which warns that it may freeze the hardware, so that only a cold restart "
    "(power off and on) helps"
)


@frozen
class SamplingRequest:
    """``interval`` is in cycles for stochastic sampling and in microseconds for host-trap."""

    method: Method
    interval: int

    @property
    def unit(self) -> str:
        """As rocprofv3 calls it."""
        return "cycles" if self.method is Method.STOCHASTIC else "time"

    def __str__(self) -> str:
        if self.method is Method.STOCHASTIC:
            return f"stochastic, every {self.interval} cycles"
        return f"host-trap, every {self.interval} us"


def asked_for(options: Options) -> SamplingRequest | None:
    """The request in ``options``, or ``None``. Raises ``UsageError`` for an interval that can't be."""
    name, interval = options[PC_SAMPLING], options[PC_INTERVAL]
    if name is None:
        return None
    if name == "host-trap":
        return SamplingRequest(Method.HOST_TRAP, interval or _DEFAULT_US)
    cycles = interval or _DEFAULT_CYCLES
    if cycles & (cycles - 1) or not _SMALLEST_CYCLES <= cycles <= _LARGEST_CYCLES:
        below = max(_SMALLEST_CYCLES, min(_LARGEST_CYCLES, 1 << (cycles.bit_length() - 1)))
        raise UsageError(
            f"--pc-interval {cycles} can't be: stochastic sampling takes a power of two from "
            f"{_SMALLEST_CYCLES} to {_LARGEST_CYCLES} cycles",
            next_step=f"for example --pc-interval {below}",
        )
    return SamplingRequest(Method.STOCHASTIC, cycles)


def require_support(request: SamplingRequest, architecture: str | None) -> None:
    """Raise ``MissingError`` for a GPU that can't be sampled so; an unknown one is left to rocprofv3."""
    if architecture is None or architecture in _BOTH:
        return
    if architecture in _HOST_TRAP_ONLY:
        if request.method is Method.HOST_TRAP:
            return
        raise MissingError(
            f"{architecture} has no stochastic PC sampling, which came with {_BOTH[0]}",
            next_step="use --pc-sampling host-trap",
        )
    if architecture < _BOTH[0] or not _ABLE_FAMILY.fullmatch(architecture):
        raise MissingError(
            f"AMD lists no PC sampling for {architecture}",
            cause=f"it is for {', '.join((*_HOST_TRAP_ONLY, *_BOTH))}",
            next_step="`rocprofv3 -L` shows what this machine can do",
        )


def sampling_command(
    executable: Path, request: SamplingRequest, application: Sequence[str], directory: str
) -> tuple[str, ...]:
    """The whole command. JSON, because it alone says where in the code a sample is.

    The kernel trace beside it names dispatches; its times are not used.
    """
    return (
        str(executable),
        "--pc-sampling-beta-enabled",
        "--pc-sampling-method",
        request.method.value,
        "--pc-sampling-unit",
        request.unit,
        "--pc-sampling-interval",
        str(request.interval),
        "--kernel-trace",
        "--output-format",
        "json",
        "-d",
        directory,
        "-o",
        "pcs_%pid%",
        "--",
        *application,
    )


# The collector of PC samples: one more run of the application under rocprofv3.

_DIRECTORY = "{directory}"
_LOG_FOLDER = Path("artifacts") / "logs"
_KEPT_CHARACTERS = 300
#: What rocprofv3 and rocprofiler-sdk say when they can't sample: pattern, fact, cause, next step.
_REFUSALS = (
    (
        r"rocprofv3[\w.-]*: error: (?:unrecognized arguments|argument).*--pc-sampling",
        "this rocprofv3 samples no program counters",
        "ROCm is older than 6.4",
        "use ROCm 7.0 or newer",
    ),
    (
        r"(?i)pc.sampling.*(?:not (?:available|supported)|unavailable|no .*config)|INCOMPATIBLE_KERNEL",
        "this GPU, or its driver, offers no such PC sampling",
        "the amdgpu driver or the firmware is too old, another program is sampling, or the GPU can't",
        "`rocprofv3 -L` shows methods and intervals; stochastic needs MEC firmware 0x1a or newer on MI300X",
    ),
)
_COMPILED = tuple((re.compile(pattern), rest) for pattern, *rest in _REFUSALS)


class _LogWatch:
    """Passes lines on and keeps the first refusal."""

    def __init__(self, forward: Callable[[str], None]) -> None:
        self._forward = forward
        self.refusal: MissingError | None = None

    def __call__(self, line: str) -> None:
        text = line[:_KEPT_CHARACTERS]
        for pattern, (fact, cause, next_step) in _COMPILED:
            if self.refusal is None and pattern.search(text):
                self.refusal = MissingError(fact, cause=cause, next_step=next_step)
        self._forward(line)


class PcSampleCollector(Collector):
    """Adds one run with PC sampling to a profile; never picked for a whole one."""

    name = "pc-sampling"
    summary = "program counters and stall reasons by rocprofv3 --pc-sampling-method (beta of AMD)"
    role = TraceRole.THREAD_TRACE
    lost_code = "collect.no_pc_samples"

    def __init__(self, executable: str | None = None) -> None:
        self._configured = executable

    def missing(self) -> str | None:
        try:
            require_rocprofv3(os.environ, self._configured)
        except MissingError as error:
            return error.one_line()
        return None

    def plan(self, request: CollectRequest) -> CollectionPlan:
        _ = request
        raise UsageError("PC samples add to a profile and are none", next_step="use --pc-sampling METHOD")

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        wanted = _sampling_request(request.options)
        if wanted is None:
            return None
        executable = require_rocprofv3(os.environ, self._configured)
        require_program(request.command)
        device = request.device()
        require_support(wanted, device.architecture if device else None)
        planned = PlannedPass(
            name="pc_sampling",
            role=TraceRole.THREAD_TRACE,
            directory="artifacts/pc_sampling",
            command=sampling_command(executable, wanted, request.command, _DIRECTORY),
            time_limit_s=request.options[PC_TIMEOUT],
        )
        return CollectionPlan((planned,))

    def announcement(self, options: Options) -> str | None:
        wanted = _sampling_request(options)
        return None if wanted is None else f"a run with PC sampling follows ({wanted}). {RISK}"

    def lost(self, error: RplError) -> Diagnostic:
        return Diagnostic(
            self.lost_code,
            f"no PC samples: {error.fact}; the profile is complete without them",
            cause=error.cause,
            remedy=error.next_step,
        )

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        """Also raises ``BadDataError`` when no sample was taken."""
        root = run_directory.absolute()
        directory = root / planned.directory
        prepare_directory(directory)
        make_directory(root / _LOG_FOLDER)
        log_path = root / _LOG_FOLDER / f"{planned.name}.log"
        watch = _LogWatch(log)
        result = run_command(
            ProcessRequest(
                command=with_directory(planned.command, directory),
                environment=profiling_environment(os.environ),
                log_path=log_path,
                time_limit_s=planned.time_limit_s,
                what=f"the application (pass {planned.name})",
            ),
            watch,
        )
        results = sorted(p for p in directory.glob("*_results.json") if p.is_file() and not p.is_symlink())
        if not result.succeeded:
            raise watch.refusal or ApplicationExitError(
                result, what=f"the application (pass {planned.name})", next_step=f"see {log_path}"
            )
        sampled = [path for path in results if holds_samples(path)]
        if not sampled:
            raise watch.refusal or BadDataError(
                f"pass {planned.name} holds no sample",
                cause="the kernels are shorter than the interval, or this GPU can't be sampled",
                next_step=f"a smaller --pc-interval; see {log_path}",
            )
        method, unit, interval = _planned_sampling(planned)
        stated = write_stated(directory, method, unit, interval)
        return PassOutcome(
            planned=planned,
            exit_status=result.exit_status,
            wall_s=result.wall_s,
            files=tuple(path.relative_to(root).as_posix() for path in (*sampled, stated)),
            log=log_path.relative_to(root).as_posix(),
            diagnostics=(_sampled_so(planned), *process_findings(planned.name, result)),
        )


def _sampling_request(options: Options) -> SamplingRequest | None:
    """Raises ``UsageError`` where sampling is wanted and a profiler is not, or for a bad interval."""
    wanted = asked_for(options)
    if wanted is not None and not options[ROCPROF]:
        raise UsageError("--pc-sampling needs a profiler", next_step="leave out --no-rocprof")
    return wanted


def _planned_sampling(planned: PlannedPass) -> tuple[str, str, int]:
    words = list(planned.command)
    method, unit, interval = (
        words[words.index(f"--pc-sampling-{word}") + 1] for word in ("method", "unit", "interval")
    )
    return method, unit, int(interval)


def _sampled_so(planned: PlannedPass) -> Diagnostic:
    method, unit, interval = _planned_sampling(planned)
    return Diagnostic(
        "pcsampling.recorded",
        f"program counters were sampled in a run of their own ({method}, every {interval} "
        f"{'cycles' if unit == 'cycles' else 'us'}); no time is taken from it",
        severity=Severity.INFO,
        where=planned.name,
    )
