"""The program: command line in, passes out, exit codes as the real driver gives them."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.rows import RocpdContents
from rpl_testkit.rocprofv3_standin.command_line import (
    EmulatedRocm,
    InputFileError,
    Log,
    emulated_rocm,
    fatal_error,
    parse_command_line,
    warning,
)
from rpl_testkit.rocprofv3_standin.passes import (
    Pass,
    PcSamplingError,
    ReplayError,
    overfull_blocks,
    plan_passes,
)
from rpl_testkit.rocprofv3_standin.result_files import (
    DiskFullError,
    NameKeys,
    NotEmulatedError,
    write_outputs,
)
from rpl_testkit.rocprofv3_standin.scenario import (
    Scenario,
    ScenarioError,
    load_scenario,
    record_processes,
    with_timing_model,
)
from rpl_testkit.synthetic_recording.mi300x import GPU_AGENT, available_counters

if TYPE_CHECKING:
    from rpl_testkit.rocprofv3_standin.thread_trace import PcSampleSet


@frozen
class Session:
    """What all passes of one invocation share."""

    application: Sequence[str]
    release: EmulatedRocm
    environment: Mapping[str, str]
    scenario: Scenario
    run_index: int | None


def profile_pass(one: Pass, session: Session) -> int:
    """Run one pass and return its exit code; does not return when the process dies by a signal."""
    log = Log(one.options.get("log_level") or "warning")
    if not (one.traces or one.counters or one.thread_trace or one.options.get("pc_sampling_beta_enabled")):
        warning("No tracing options were enabled.")
    if one.thread_trace and (problem := _decoder_missing(one, session)):
        return fatal_error(problem)
    failures = _failures(one, session)
    if one.pc_sampling is not None and (not one.pc_sampling.is_offered or "pc_unsupported" in failures):
        return log.sampling_not_offered()
    if one.pc_sampling is not None and not one.pc_sampling.is_configurable:
        log.sampling_not_configured()
        die_by(signal.SIGABRT)
    counters = _usable_counters(one.counters, failures.get("unavailable", ""), log)
    if any(overfull_blocks(group) for group in one.groups or (counters,)):
        # The real tool notices inside the first dispatch and aborts the application with itself.
        log.over_capacity()
        die_by(signal.SIGABRT)
    try:
        run = run_application(session.application, session.environment)
    except OSError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    _misbehave(failures)
    if "no_output" not in failures and run.signal_number != signal.SIGKILL:
        if run.signal_number:
            log.caught_signal(run.pid, run.signal_number)
        _write(one, session, counters, run, log, failures)
    if run.signal_number:
        die_by(run.signal_number)
    return int(failures.get("exit", run.exit_code))


def _decoder_missing(one: Pass, session: Session) -> str | None:
    from rpl_testkit.rocprofv3_standin.thread_trace import decoder_missing

    return decoder_missing(one.options, session.environment)


def _scenario(session: Session) -> Scenario:
    """What this run of the application does; a declared timing model counts it."""
    if not session.environment.get("RPL_STANDIN_TIMING_MODEL"):
        return session.scenario
    return with_timing_model(session.scenario, session.environment, session.application)


def _failures(one: Pass, session: Session) -> dict[str, str]:
    text = session.environment.get("RPL_STANDIN_MISBEHAVE") or session.scenario.misbehaviour
    given = parse_misbehaviours(text)
    return active_misbehaviours(given, counting=bool(one.counters), run=session.run_index)


def _usable_counters(requested: tuple[str, ...], withheld: str, log: Log) -> tuple[str, ...]:
    """Drop counters the device lacks, with the real warning; `NAME:device=N` binds to GPU N."""
    known = set(available_counters()) - set(withheld.split(","))
    here = tuple(name for name in requested if name.partition(":device=")[2] in ("", "0"))
    usable = tuple(name for name in here if name.partition(":")[0] in known)
    if usable != here:
        log.missing_counters(GPU_AGENT, 0, "gfx942", here, usable)
    return tuple(dict.fromkeys(name.partition(":")[0] for name in usable))


def _misbehave(failures: Mapping[str, str]) -> None:
    if "slow" in failures:
        time.sleep(float(failures["slow"]))
    if "hang_hard" in failures:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    while "hang" in failures or "hang_hard" in failures:
        signal.pause()
    if "abort" in failures:
        die_by(signal.SIGABRT)


def _samples(contents: RocpdContents, one: Pass, scenario: Scenario, seed: str) -> PcSampleSet | None:
    if one.pc_sampling is None:
        return None
    from rpl_testkit.rocprofv3_standin.thread_trace import sample_application

    return sample_application(contents, scenario.application, one.pc_sampling, seed)


def _write(
    one: Pass,
    session: Session,
    counters: tuple[str, ...],
    run: ApplicationRun,
    log: Log,
    failures: Mapping[str, str],
) -> None:
    seed = run_seed(session.environment, session.run_index, one.directory)
    launched = time.strftime("%Y-%m-%d %Y-%m-%d_%H.%M")
    ids = (os.getppid(), os.getpgrp(), os.getsid(0))
    try:
        scenario = _scenario(session)
        for contents in record_processes(one, counters, scenario, run.pid, session.application, seed):
            pid = contents.process.pid
            keys = NameKeys.of_process(pid, ids, session.application, session.environment, launched)
            if len(one.groups) > 1:
                from rpl_testkit.rocprofv3_standin.result_files import in_groups

                contents = in_groups(contents, one, failures, log)
            samples = _samples(contents, one, scenario, seed)
            write_outputs(contents, one, keys, session.release, log, failures, samples)
            if one.thread_trace:
                from rpl_testkit.rocprofv3_standin.thread_trace import write_thread_traces

                write_thread_traces(contents, one, keys, session.environment, log, failures)
    except NotEmulatedError as error:
        warning(str(error))
    except DiskFullError:
        die_by(signal.SIGABRT)
    except OSError as error:
        # An unwritable place ends the real tool by an uncaught C++ exception.
        text = f"filesystem error: cannot create directories: {error.strerror} [{error.filename}]"
        kind = "std::filesystem::filesystem_error"
        print(f"terminate called after throwing an instance of '{kind}'\n  what():  {text}", file=sys.stderr)
        die_by(signal.SIGABRT)


# The driver.


def main(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run the stand-in and return its exit code; argparse leaves by SystemExit(2)."""
    environment = dict(os.environ if environment is None else environment)
    # Ctrl-C ends the real program too; a Python traceback would betray the stand-in.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        release = emulated_rocm(environment)
        options, application = parse_command_line(arguments, release, environment)
        return _answer(options, application, release, environment)
    except (InputFileError, PcSamplingError, ReplayError) as error:
        return fatal_error(str(error))
    except (RuntimeError, ScenarioError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _answer(
    options: dict[str, Any], application: list[str], release: EmulatedRocm, environment: Mapping[str, str]
) -> int:
    if options.get("version"):
        print(_version_text(release))
        return 0
    if options.get("pid"):
        return fatal_error("attaching to a process is not part of rpl's stand-in")
    if options.get("list_avail"):
        from rpl_testkit.rocprofv3_standin.passes import list_available

        print(list_available())
        if not application:
            return 0
    if not application:
        return fatal_error("No application provided")
    passes = plan_passes(options, release, environment)
    if options.get("echo"):
        print(f"command: {application}")
        return 0
    session = Session(
        application, release, environment, load_scenario(environment), next_run_index(environment)
    )
    return _run(passes, session)


def _run(passes: tuple[Pass, ...], session: Session) -> int:
    if len(passes) == 1:
        return profile_pass(passes[0], session)
    for one in passes:
        code = profile_pass(one, session)
        if code:
            text = f"Command '{list(session.application)}' returned non-zero exit status {code}."
            return fatal_error(text)
    return 0


def _version_text(release: EmulatedRocm) -> str:
    facts = {
        "version": release.sdk,
        "git_revision": "rpl-standin (synthetic)",
        "library_arch": "x86_64-linux-gnu",
        "system_name": "Linux",
        "system_processor": "x86_64",
        "rocm_version": release.rocm,
    }
    return "\n".join(f"    {key:>16}: {value}" for key, value in facts.items())


# The application as a child, with real exit codes and signals.

_PASSED_ON: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


@frozen
class ApplicationRun:
    """How the application ended; `signal_number` None when it exited by itself."""

    pid: int
    exit_code: int
    signal_number: int | None = None


class _SignalPassing:
    """Passes signals on to a child; those that arrive before it exists wait for it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._former = {
            number: signal.signal(number, self._receive)
            for number in _PASSED_ON
            # What the caller had ignored (nohup) stays ignored, for the child as well.
            if signal.getsignal(number) is not signal.SIG_IGN
        }

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)

    def attach(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        while self._early:
            child.send_signal(self._early.pop(0))

    def end(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)


def run_application(command: Sequence[str], environment: Mapping[str, str]) -> ApplicationRun:
    """Start `command` and wait for its end. OSError when it can't be started."""
    passing = _SignalPassing()
    try:
        with subprocess.Popen(command, env=dict(environment)) as child:
            passing.attach(child)
            code = child.wait()
    finally:
        passing.end()
    if code < 0:
        return ApplicationRun(child.pid, 128 - code, -code)
    return ApplicationRun(child.pid, code)


def die_by(number: int) -> None:
    """End this process by signal `number`, so that the caller sees what became of the application."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


# Misbehaviour on demand, so that tests see how a caller copes with a profiler that fails.
#
# `RPL_STANDIN_MISBEHAVE` or the scenario key `misbehaviour` holds `KIND[=VALUE][:WHEN]`, several separated
# by `;`. KIND: `hang`, `hang_hard` (ignores SIGTERM and SIGINT), `abort`, `no_output`, `truncated`,
# `empty`, `disk_full`, `slow=SECONDS`, `unavailable=COUNTER,...`, `exit=CODE`, for thread traces
# `att_empty`, `att_data_lost`, `att_undecoded`, for PC sampling `pc_unsupported`, for kernel replay
# `replay_declined=REASON` (launches of the first kernel). WHEN: `trace`, `counters` or `run=N` (needs
# `RPL_STANDIN_STATE`, runs count from 1).

_KINDS: Final = (
    "hang",
    "hang_hard",
    "abort",
    "no_output",
    "truncated",
    "empty",
    "disk_full",
    "slow",
    "unavailable",
    "exit",
    "att_empty",
    "att_data_lost",
    "att_undecoded",
    "pc_unsupported",
    "replay_declined",
)


@frozen
class Misbehaviour:
    """One failure: what, with which value, and when (empty: always)."""

    kind: str
    value: str = ""
    when: str = ""


def parse_misbehaviours(text: str) -> tuple[Misbehaviour, ...]:
    """Read the notation above. ValueError names what is not understood."""
    return tuple(_parse_one(part.strip()) for part in text.split(";") if part.strip())


def _parse_one(text: str) -> Misbehaviour:
    action, _, when = text.partition(":")
    kind, _, value = action.partition("=")
    if kind not in _KINDS:
        raise ValueError(f"misbehaviour {kind!r} is not one of {', '.join(_KINDS)}")
    if when and when not in ("trace", "counters") and not when.startswith("run="):
        raise ValueError(f"condition {when!r} is not trace, counters or run=N")
    return Misbehaviour(kind, value, when)


def active_misbehaviours(
    given: tuple[Misbehaviour, ...], *, counting: bool, run: int | None
) -> dict[str, str]:
    """Return kind to value of those that apply to this run."""
    here = {"", "counters" if counting else "trace", f"run={run}"}
    return {item.kind: item.value for item in given if item.when in here}


# Which run this is: a counter kept in a file, so that repeated runs differ in a repeatable way.


def next_run_index(environment: Mapping[str, str]) -> int | None:
    """Count this run in the file that `RPL_STANDIN_STATE` names, from 1; None without it."""
    name = environment.get("RPL_STANDIN_STATE")
    if not name:
        return None
    with Path(name).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        index = int(file.read() or 0) + 1
        file.truncate(0)
        file.write(str(index))
    return index


def run_seed(environment: Mapping[str, str], index: int | None, output_directory: str | None) -> str:
    """Return the seed of this run's jitter.

    Runs differ by their index or, without a counter file, by the last part of their output directory; so
    the same series of runs repeats exactly.
    """
    base = environment.get("RPL_STANDIN_SEED", "0")
    place = Path(output_directory).name if output_directory else ""
    return f"{base}/{place if index is None else index}"
