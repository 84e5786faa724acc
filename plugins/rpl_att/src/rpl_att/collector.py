"""The collector of thread traces: run rocprofv3 --att, and aim once more when the target CU got no wave."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from rpl_att.analysis.utilisation import busiest_target
from rpl_att.options import DEEP_ANALYSIS, DEEP_TIMEOUT, DEEP_TOP, REMEDY, AttSettings, find_decoder
from rpl_att.reading import TraceFolder, files_beside, is_raw_file
from rpl_att.reading.wave_files import read_occupancy
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.files import make_directory
from rpl_core.interfaces.collector import (
    CollectionPlan,
    Collector,
    CollectRequest,
    FollowUpRequest,
    LineSink,
    PassOutcome,
    PlannedPass,
)
from rpl_core.interfaces.options import Options
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.process import (
    ApplicationExitError,
    ProcessRequest,
    ProcessResult,
    process_findings,
    require_program,
    run_command,
)
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_rocprofv3.collector import profiling_environment, require_rocprofv3
from rpl_rocprofv3.collector.passes import prepare_directory, with_directory
from rpl_rocprofv3.options import ROCPROF

# Which kernels are traced, which launch of each, and with which command: one pass per kernel.


_FOLDER = "artifacts/att"
#: Activity counters exist on gfx9 only (docs/reference/thread-trace.md, 4.1).
_ACTIVITY_PREFIX = "gfx9"


@frozen
class KernelTarget:
    """A kernel to trace, by its name in the timing runs, and its launches per run."""

    name: str
    launches: float

    @property
    def traced_launch(self) -> int:
        """The second launch, whose caches are warm, unless there is only one (launches count from 1)."""
        return 2 if self.launches >= 2 else 1


@frozen
class TraceTools:
    """rocprofv3 and the folder of the trace decoder."""

    profiler: Path
    decoder_folder: Path


def most_critical(documents: Mapping[str, Mapping[str, Any]], top: int) -> tuple[KernelTarget, ...]:
    """Kernels by their weight on the critical path, then by time, then by name.

    Raises ``MissingError`` where nothing tells how much the kernels weigh.
    """
    profile = documents.get("profile")
    if profile is None:
        raise MissingError(
            "which kernels are the most critical is not known without profile.json",
            next_step="pip install rpl-analysis",
        )
    ranked = sorted(profile["kernels"], key=_rank)
    return tuple(KernelTarget(kernel["name"], kernel["launches"]) for kernel in ranked[:top])


def _rank(kernel: Mapping[str, Any]) -> tuple[float, float, str]:
    return -(kernel["criticality_weight"] or 0.0), -(kernel["runtime_ms"] or 0.0), kernel["name"]


def plan_traces(
    kernels: Sequence[KernelTarget],
    command: tuple[str, ...],
    tools: TraceTools,
    settings: AttSettings,
    *,
    architecture: str | None,
    time_limit_s: float | None,
) -> CollectionPlan:
    """Passes for ``kernels`` in their order. Raises ``UsageError`` without a kernel."""
    if not kernels:
        raise UsageError("no kernel to trace: the timing runs recorded none")
    activity = architecture is not None and architecture.startswith(_ACTIVITY_PREFIX)
    return CollectionPlan(
        passes=tuple(
            PlannedPass(
                name=f"att_{number}",
                role=TraceRole.THREAD_TRACE,
                directory=f"{_FOLDER}_{number}",
                command=trace_command(
                    tools.profiler,
                    tools.decoder_folder,
                    command,
                    kernel.name,
                    kernel.traced_launch,
                    settings,
                    activity=activity,
                ),
                time_limit_s=time_limit_s,
            )
            for number, kernel in enumerate(kernels, start=1)
        )
    )


_LOG_FOLDER = Path("artifacts") / "logs"
_AGAIN = "_again"


@frozen
class _Attempt:
    """One execution: what it left, what its log said, and its own findings."""

    planned: PlannedPass
    result: ProcessResult
    output: TraceOutput
    watch: AttLogWatch
    log: Path


class ThreadTraceCollector(Collector):
    """Records thread traces of single kernels; never picked for a whole profile."""

    name = "thread-trace"
    summary = "instruction traces of single kernels by rocprofv3 --att (ROCm 7.0 or newer)"
    role = TraceRole.THREAD_TRACE
    lost_code = "collect.no_thread_trace"

    def __init__(self, settings: AttSettings) -> None:
        self._settings = settings

    def missing(self) -> str | None:
        try:
            self._tools()
        except MissingError as error:
            return error.one_line()
        return None

    def plan(self, request: CollectRequest) -> CollectionPlan:
        _ = request
        raise UsageError("thread traces add to a profile and are none", next_step="use --deep-analysis")

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        """Passes for the most critical kernels of the run so far, where the options ask for them."""
        if not _is_asked_for(request.options):
            return None
        reason = self.missing()
        if reason is not None:
            raise MissingError(reason)
        kernels = most_critical(request.documents(), request.options[DEEP_TOP])
        require_program(request.command)
        device = request.device()
        return plan_traces(
            kernels,
            request.command,
            self._tools(),
            self._settings,
            architecture=device.architecture if device else None,
            time_limit_s=request.options[DEEP_TIMEOUT],
        )

    def announcement(self, options: Options) -> str | None:
        if not _is_asked_for(options):
            return None
        return f"thread traces of the {options[DEEP_TOP]} most critical kernels follow"

    def lost(self, error: RplError) -> Diagnostic:
        return Diagnostic(
            self.lost_code,
            f"no thread trace: {error.fact}; the profile is complete without it",
            cause=error.cause,
            remedy=error.next_step,
        )

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        """Also raises ``BadDataError`` when nothing was traced, with what to do about it."""
        root = run_directory.absolute()
        attempt = self._attempt(planned, root, log)
        diagnostics: list[Diagnostic] = []
        target = _aim_again(attempt)
        if target is not None:
            diagnostics.append(_aimed_again(attempt.planned, target))
            again = attrs.evolve(
                planned,
                name=f"{planned.name}{_AGAIN}",
                directory=f"{planned.directory}{_AGAIN}",
                command=aimed_at(planned.command, target),
            )
            attempt = self._attempt(again, root, log)
        _require_trace(attempt)
        return PassOutcome(
            planned=planned,
            exit_status=attempt.result.exit_status,
            wall_s=attempt.result.wall_s,
            files=tuple(path.relative_to(root).as_posix() for path in attempt.output.files()),
            log=attempt.log.relative_to(root).as_posix(),
            diagnostics=(
                *diagnostics,
                *attempt.watch.findings(planned.name),
                *process_findings(planned.name, attempt.result),
            ),
        )

    def _tools(self) -> TraceTools:
        """Raises ``MissingError`` for either of them."""
        executable = require_rocprofv3(os.environ, self._settings.executable)
        library = find_decoder(self._settings.decoder_variables(os.environ), executable)
        if library is None:
            raise MissingError("no trace decoder was found", next_step=REMEDY)
        return TraceTools(executable, library)

    def _attempt(self, planned: PlannedPass, root: Path, log: LineSink) -> _Attempt:
        directory = root / planned.directory
        prepare_directory(directory)
        make_directory(root / _LOG_FOLDER)
        log_path = root / _LOG_FOLDER / f"{planned.name}.log"
        watch = AttLogWatch(log)
        request = ProcessRequest(
            command=with_directory(planned.command, directory),
            environment=profiling_environment(os.environ),
            log_path=log_path,
            time_limit_s=planned.time_limit_s,
            what=f"the application (pass {planned.name})",
        )
        result = run_command(request, watch)
        output = trace_output(directory)
        if not result.succeeded and not output.folders:
            raise watch.refusal() or ApplicationExitError(
                result, what=f"the application (pass {planned.name})", next_step=f"see {log_path}"
            )
        return _Attempt(planned, result, output, watch, log_path)


def _is_asked_for(options: Options) -> bool:
    """Raises ``UsageError`` where a profiler is wanted and refused at the same time."""
    if not options[DEEP_ANALYSIS]:
        return False
    if not options[ROCPROF]:
        raise UsageError("--deep-analysis needs a profiler", next_step="leave out --no-rocprof")
    return True


def _aim_again(attempt: _Attempt) -> Target | None:
    """Where to aim instead, if nothing was traced and waves ran elsewhere."""
    folders = attempt.output.folders
    if not folders or not all(is_empty(folder) for folder in folders):
        return None
    target = better_target(folders)
    return None if target is None or target == target_of(attempt.planned.command) else target


def _aimed_again(planned: PlannedPass, target: Target) -> Diagnostic:
    return Diagnostic(
        "att.aimed_again",
        f"no wave ran on {target_of(planned.command)}; traced again on {target}, where most waves ran",
        severity=Severity.INFO,
        where=planned.name,
    )


def _require_trace(attempt: _Attempt) -> None:
    if attempt.output.folders:
        if not all(is_empty(folder) for folder in attempt.output.folders):
            return
        raise BadDataError(
            f"the trace of pass {attempt.planned.name} is empty: no instruction was traced",
            cause="no wave ran on the target CU, or nothing can be traced (seen on MI300X, ROCm 7.2.0)",
            next_step="try plugins.att.shader-engine-mask = 0x11111111, a larger grid or another ROCm",
        )
    refusal = attempt.watch.refusal()
    if refusal is not None:
        raise refusal
    state = counted(len(attempt.output.raw), "raw file") if attempt.output.raw else "no file"
    raise BadDataError(
        f"pass {attempt.planned.name} left {state} and no decoded trace",
        cause="the kernel filter matched nothing, or the GPU can't be traced",
        next_step=f"see {attempt.log}",
    )


@frozen
class TraceOutput:
    """Paths in a pass's directory, sorted. ``results`` tie dispatches to kernels."""

    folders: tuple[Path, ...]
    raw: tuple[Path, ...]
    results: tuple[Path, ...]

    def files(self) -> tuple[Path, ...]:
        """Every file that an analysis reads."""
        inside = [file for folder in self.folders for file in sorted(folder.iterdir()) if file.is_file()]
        tables = [folder.parent / f"stats_{folder.name}.csv" for folder in self.folders]
        beside = [path for path in tables if path.is_file()]
        return (*inside, *beside, *self.raw, *self.results)


def trace_output(directory: Path) -> TraceOutput:
    """Look at ``directory`` and one level below; links are not followed."""
    beside = files_beside(directory)
    folders = [p for p in directory.glob("ui_output_agent_*_dispatch_*") if p.is_dir() and not p.is_symlink()]
    return TraceOutput(
        folders=tuple(sorted(folders)),
        raw=tuple(path for path in beside if is_raw_file(path.name)),
        results=tuple(path for path in beside if path.name.endswith("_results.json")),
    )


def is_empty(folder: Path) -> bool:
    """Whether the decoder found no instruction (``"code": null``) or wrote no code at all."""
    try:
        table = TraceFolder.at(folder).table("code.json")
    except BadDataError:
        return False  # damaged is not empty: the reader will say what is wrong
    return not isinstance(table, dict) or not table.get("code")


def better_target(folders: tuple[Path, ...]) -> Target | None:
    """The busiest (shader engine, CU) that the occupancy of an empty trace shows."""
    for folder in folders:
        try:
            events = read_occupancy(TraceFolder.at(folder))
        except BadDataError:
            continue
        place = busiest_target(events) if events else None
        if place is not None:
            engine, cu = place
            return Target(cu, 1 << engine)
    return None


# The exact rocprofv3 command line of a thread trace, and what it and its decoder say.


DIRECTORY = "{directory}"
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{}])")
_TARGET_OPTION = "--att-target-cu"
_MASK_OPTION = "--att-shader-engine-mask"


@frozen
class Target:
    """Where instructions are traced: one CU (WGP) number on every shader engine of the mask."""

    cu: int
    shader_engine_mask: int

    def __str__(self) -> str:
        return f"CU {self.cu}, shader engine mask {self.shader_engine_mask:#x}"


def trace_command(
    executable: Path,
    library_folder: Path,
    application: Sequence[str],
    kernel: str,
    iteration: int,
    settings: AttSettings,
    *,
    activity: bool,
) -> tuple[str, ...]:
    """One pass that traces launch ``iteration`` (from 1) of ``kernel``.

    The kernel trace beside it joins the trace to its dispatch; its times are not used. The decoder's folder
    is given as an option, since the variable is read wrongly by some releases.
    """
    target = Target(settings.target_cu, settings.shader_engine_mask)
    rate = ("--att-activity", str(settings.activity)) if activity and settings.activity else ()
    return (
        str(executable),
        "--att",
        "--att-library-path",
        str(library_folder),
        *_aim(target),
        "--att-buffer-size",
        f"{settings.buffer_bytes:#x}",
        *rate,
        "--kernel-include-regex",
        exactly(kernel),
        "--kernel-iteration-range",
        f"[{iteration}]",
        "--kernel-trace",
        "--output-format",
        "json",
        "-d",
        DIRECTORY,
        "-o",
        "att_%pid%",
        "--",
        *application,
    )


def exactly(name: str) -> str:
    """A regular expression, in the grammar of ECMAScript, that matches ``name`` alone."""
    escaped = _SPECIAL.sub(r"\\\1", name)
    return f"^{escaped}$"


def _aim(target: Target) -> tuple[str, ...]:
    return (_TARGET_OPTION, str(target.cu), _MASK_OPTION, f"{target.shader_engine_mask:#x}")


def target_of(command: Sequence[str]) -> Target:
    """The target in a planned command."""
    words = list(command)
    cu = words[words.index(_TARGET_OPTION) + 1]
    return Target(int(cu), int(words[words.index(_MASK_OPTION) + 1], 0))


def aimed_at(command: Sequence[str], target: Target) -> tuple[str, ...]:
    """The same command with another target."""
    words = list(command)
    words[words.index(_TARGET_OPTION) + 1] = str(target.cu)
    words[words.index(_MASK_OPTION) + 1] = f"{target.shader_engine_mask:#x}"
    return tuple(words)


# What rocprofv3 and its decoder say about a thread trace, and what to do about it.
#
# See docs/reference/thread-trace.md, 4.3.

_KEPT_CHARACTERS = 300


@frozen
class _Symptom:
    code: str
    pattern: re.Pattern[str]
    fact: str
    remedy: str


def _symptom(code: str, pattern: str, fact: str, remedy: str) -> _Symptom:
    return _Symptom(code, re.compile(pattern), fact, remedy)


_FEWER = "trace fewer shader engines (plugins.att.shader-engine-mask), or sample counters less often"
_SYMPTOMS = (
    _symptom(
        "att.buffer_full",
        r"Thread trace buffer full",
        "the trace buffer was full, so the trace ends early",
        "raise plugins.att.buffer-bytes, or trace fewer shader engines",
    ),
    _symptom("att.data_lost", r"Data Lost", "part of the trace was lost on its way to memory", _FEWER),
    _symptom(
        "att.stitch_incomplete",
        r"Stitch Incomplete",
        "some of the trace could not be matched to instructions",
        "treat figures of single lines as lower bounds",
    ),
    _symptom(
        "att.wave_incomplete",
        r"Wave incomplete",
        "the trace ends before some waves did",
        "treat lifetimes as lower bounds; raise plugins.att.buffer-bytes",
    ),
    _symptom(
        "att.code_missing",
        r"Could not fetch some instructions|code object.* was not loaded",
        "the decoder lacked some of the code",
        "treat the listing as incomplete",
    ),
    _symptom(
        "att.context_switched",
        r"Wave had \d+ context save",
        "waves were saved and restored while they were traced, so their latencies are too long",
        "run alone on the GPU",
    ),
)
_REFUSALS = (
    (
        r"rocprofv3[\w.-]*: error: unrecognized arguments:.*--att",
        "this rocprofv3 records no thread traces",
        "ROCm is older than 7.0",
        "use ROCm 7.0 or newer",
    ),
    (
        r"rocprof-trace-decoder library path not found",
        "rocprofv3 found no trace decoder",
        "the library is not in the folder that rpl found",
        "see `rpl doctor`",
    ),
    (
        r"Error loading decoder|Decoder library not found",
        "rocprofv3 could not load the trace decoder; the raw trace is kept",
        "the library is of another release",
        "install the decoder that belongs to this ROCm",
    ),
    (
        r"INVALID_SHADER_DATA|Callback failed with status|Agent not supported",
        "the trace of this GPU could not be decoded; the raw trace is kept",
        "the decoder does not know this GPU, or ROCm and the decoder do not match",
        "use the newest ROCm and decoder",
    ),
)
_COMPILED_REFUSALS = tuple((re.compile(refusal[0]), refusal[1:]) for refusal in _REFUSALS)


class AttLogWatch:
    """A line sink that notes symptoms and passes every line on."""

    def __init__(self, forward: Callable[[str], None]) -> None:
        self._forward = forward
        self._counts: dict[str, int] = {}
        self._refusal: tuple[str, str, str] | None = None

    def __call__(self, line: str) -> None:
        text = line[:_KEPT_CHARACTERS]
        for symptom in _SYMPTOMS:
            if symptom.pattern.search(text):
                self._counts[symptom.code] = self._counts.get(symptom.code, 0) + 1
        for pattern, refusal in _COMPILED_REFUSALS:
            if self._refusal is None and pattern.search(text):
                self._refusal = refusal
        self._forward(line)

    def refusal(self) -> MissingError | None:
        """Why the profiler gave no decoded trace, if it said so."""
        if self._refusal is None:
            return None
        fact, cause, remedy = self._refusal
        return MissingError(fact, cause=cause, next_step=remedy)

    def findings(self, where: str) -> tuple[Diagnostic, ...]:
        """One warning per kind of trouble, in a fixed order."""
        return tuple(
            Diagnostic(s.code, s.fact, remedy=s.remedy, where=where, count=self._counts[s.code])
            for s in _SYMPTOMS
            if s.code in self._counts
        )
