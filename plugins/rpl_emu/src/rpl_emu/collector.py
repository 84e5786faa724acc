"""The collector of the emulated device: programs run without a GPU and leave a recording."""

from __future__ import annotations

import shlex
from pathlib import Path

from rpl_core.errors import BadDataError, MissingError, RplError
from rpl_core.files import make_directory, storage_error
from rpl_core.interfaces.collector import (
    CollectionPlan,
    Collector,
    CollectRequest,
    LineSink,
    PassOutcome,
    PlannedPass,
)
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.process import (
    ApplicationExitError,
    ProcessRequest,
    process_findings,
    require_program,
    run_command,
)
from rpl_core.run_directory import ARTIFACTS
from rpl_core.text import masked_words
from rpl_emu.software_gpu import DEVICE, RUNTIME

_TIMING_FOLDER = ".rocpd_profile"
LAUNCHES = "software_kfd.log"
#: native/softkfd/queue/log.cpp: the program was ended, since what it does would be lost.
_LOG_LOST = "softkfd: its log can't be written: "


class EmulatedCollector(Collector):
    """Counts are exact, times are modelled bounds; one run says everything, since each gives the same."""

    name = DEVICE
    summary = "kernels in the emulator, without a GPU: exact counts, modelled times"
    device = DEVICE
    deterministic = True

    def missing(self) -> str | None:
        from rpl_emu.software_gpu import call, find_launcher

        try:
            find_launcher()
            call(["doctor"], seconds=30)
        except RplError as error:
            return error.one_line()
        return None

    def plan(self, request: CollectRequest) -> CollectionPlan:
        from rpl_emu.software_gpu import find_runtime, launcher_words

        require_program(request.command)
        runtime = find_runtime(request.command, request.options[RUNTIME])
        command = (*launcher_words(runtime), *request.command)
        passes = []
        if request.runs:
            passes.append(
                self._planned("run_1", TraceRole.TIMING, f"{_TIMING_FOLDER}/run_1", command, request)
            )
        if request.counters:
            passes.append(
                self._planned("pass_1", TraceRole.COUNTERS, f"{ARTIFACTS}/pass_1", command, request)
            )
        return CollectionPlan(tuple(passes), tuple(_findings(request)))

    @staticmethod
    def _planned(
        name: str, role: TraceRole, directory: str, command: tuple[str, ...], request: CollectRequest
    ) -> PlannedPass:
        counters = tuple(_offered(request.counters)) if role is TraceRole.COUNTERS else ()
        return PlannedPass(name, role, directory, command, counters, request.time_limit_s)

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        from rpl_emu.software_gpu import environment

        root = run_directory.absolute()
        folder = root / planned.directory
        make_directory(folder)
        make_directory(root / ARTIFACTS / "logs")
        log_path = root / ARTIFACTS / "logs" / f"{planned.name}.log"
        what = f"the application (pass {planned.name})"
        launches = folder / LAUNCHES
        launches.unlink(missing_ok=True)
        request = ProcessRequest(
            command=planned.command,
            environment={**environment(), "SOFTKFD_LOG": str(launches)},
            log_path=log_path,
            time_limit_s=planned.time_limit_s,
            what=what,
        )
        lost: list[str] = []

        def sink(line: str) -> None:
            if line.startswith(_LOG_LOST):
                lost.append(line.removeprefix(_LOG_LOST))
            log(line)

        result = run_command(request, sink)
        if lost:
            size = launches.stat().st_size if launches.is_file() else 0
            raise MissingError(
                f"what the application launched could not be written to {launches}: {lost[0]}",
                cause=f"it takes more than the {size} bytes that were written",
                next_step="free some space, or choose another place with -o DIR",
            )
        if not result.succeeded:
            raise ApplicationExitError(result, what=what, next_step=f"see {log_path}, or add --debug")
        files = _recordings(launches, folder, planned)
        return PassOutcome(
            planned=planned,
            exit_status=result.exit_status,
            wall_s=result.wall_s,
            files=tuple(path.relative_to(root).as_posix() for path in files),
            log=log_path.relative_to(root).as_posix(),
            diagnostics=process_findings(planned.name, result),
            tool_version="rpl-emu",
        )


def _offered(counters: tuple[str, ...]) -> list[str]:
    from rpl_emu.rocpd_file import counter_map

    return [name for name in counters if name in counter_map()["counters"]]


def _findings(request: CollectRequest) -> list[Diagnostic]:
    diagnostics = [
        Diagnostic(
            code="collect.emulated",
            fact="kernels ran in the emulator: exact counts, modelled bounds for times (issue slots, LDS, "
            "bytes over the peak of HBM from cold caches; no latencies or stalls), nothing measured",
            severity=Severity.INFO,
            remedy="record on a GPU for times",
        )
    ]
    lacking = sorted(set(request.counters) - set(_offered(request.counters)))
    if lacking:
        diagnostics.append(
            Diagnostic(
                code="collect.counters_not_emulated",
                fact=f"the emulator has no {', '.join(lacking)}",
                remedy="record on a GPU for what depends on time or caches",
            )
        )
    return diagnostics


def _recordings(log: Path, folder: Path, planned: PlannedPass) -> list[Path]:
    from rpl_emu.rocpd_file import read_work, write_rocpd

    if not log.exists():
        raise MissingError(
            "the application never asked for a GPU",
            cause="it uses no HIP or HSA, is linked statically, or its runtime is not the one that was found",
            next_step="rpl emu run -- ./app shows what it does",
        )
    by_process = read_work(log)
    if not by_process:
        raise BadDataError(
            "the application launched no kernel", next_step="check its arguments by: rpl emu run -- ./app"
        )
    from rpl_emu.heat import SUFFIX
    from rpl_emu.heat_count import write_heat

    command = shlex.join(masked_words(planned.command))
    files = []
    for pid, work in by_process.items():
        path = folder / f"{pid}_results.db"
        write_rocpd(path, pid, command, work, planned.counters)
        files.append(path)
        if planned.role is TraceRole.TIMING:
            files.append(folder / f"{pid}{SUFFIX}")
            try:
                write_heat(files[-1], work.launches, masked_words(planned.command))
            except OSError as error:
                raise storage_error(files[-1], error) from error
    return files
