"""What a worker does: build, validate and time the configurations of one job."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_autotune.evaluation.build import build_variant, file_lock
from rpl_autotune.evaluation.digests import command_digest
from rpl_autotune.evaluation.templates import PROGRAM
from rpl_autotune.evaluation.times import TimedRun, TimesUnknownError, record_run, timed_runs
from rpl_autotune.interfaces.job import Job, Outcome, Reading
from rpl_core.errors import (
    ApplicationError,
    BadDataError,
    DeviceMismatchError,
    InterruptedRunError,
    MissingError,
    PluginError,
    RplError,
    TimeLimitError,
)
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.outcome import describe_exit

if TYPE_CHECKING:
    from rpl_autotune.interfaces.job import PluginChoice, State, Variant
    from rpl_core.plugins.host import PluginHost

__all__ = ["answer_job", "run_job"]


@attrs.define
class _Prepared:
    """A configuration on its way: its command once it is built, its times, or why it has none."""

    variant: Variant
    command: tuple[str, ...] = ()
    binary: str | None = None
    times_ms: list[float] = attrs.field(factory=list)
    origin: str | None = None
    state: State = "ok"
    reason: str | None = None

    def fail(self, state: State, reason: str) -> None:
        self.state, self.reason = state, reason

    def reading(self) -> Reading:
        return Reading.model_validate(
            {
                "index": self.variant.index,
                "state": self.state,
                "times_ms": tuple(self.times_ms) if self.state == "ok" else (),
                "origin": self.origin,
                "reason": self.reason,
                "binary": self.binary,
            }
        )


def run_job(job: Job, device: str) -> Outcome:
    """Measure ``job`` on ``device``, alone there among all that asks in this way.

    What a configuration does wrong is a state of its reading. What is wrong with the machine (no such tool,
    no space) is raised, and so is ``InterruptedRunError``.
    """
    begin = time.monotonic()
    with file_lock(_device_lock(device)):
        prepared = [_prepare(variant, job) for variant in job.variants]
        if job.in_turns:
            _measure_in_turns(prepared, job)
        else:
            for one in prepared:
                _measure(one, job, job.timing.runs)
    readings = tuple(one.reading() for one in prepared)
    return Outcome(number=job.number, device=device, readings=readings, wall_s=time.monotonic() - begin)


def _device_lock(device: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", device)
    return Path(tempfile.gettempdir()) / f"rpl-autotune-{os.getuid()}-{name}.lock"


def _prepare(variant: Variant, job: Job) -> _Prepared:
    prepared = _Prepared(variant, variant.command)
    place = Path(job.working_directory)
    if variant.build:
        built = build_variant(variant, Path(job.scratch), place, job.build_time_limit_s)
        if built.program is None:
            prepared.fail("build_failed", built.reason or "the build failed")
            return prepared
        prepared.binary = built.digest
        prepared.command = tuple(word.replace(PROGRAM, str(built.program)) for word in variant.command)
        validate = tuple(word.replace(PROGRAM, str(built.program)) for word in variant.validate_command)
    else:
        prepared.binary, validate = command_digest(variant.command, place), variant.validate_command
    if validate:
        _validate(prepared, validate, job)
    return prepared


def _validate(prepared: _Prepared, command: tuple[str, ...], job: Job) -> None:
    request = ProcessRequest(
        command,
        time_limit_s=job.time_limit_s,
        working_directory=Path(job.working_directory),
        what="the validation",
    )
    said: list[str] = []
    try:
        result = run_command(request, lambda line: said.append(line) if len(said) < 1000 else None)
    except TimeLimitError as error:
        prepared.fail("time_limit", error.fact)
        return
    if not result.succeeded:
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        prepared.fail("wrong", f"the validation {describe_exit(result)}{': ' + last[:200] if last else ''}")


def _measure_in_turns(prepared: list[_Prepared], job: Job) -> None:
    """One discarded run of each, then rounds in which the order turns: drift hits all alike."""
    for one in prepared:
        _measure(one, job, 1)
        one.times_ms.clear()
    if job.keep is not None and prepared[0].state == "ok":
        run = TimedRun(prepared[0].command, Path(job.working_directory), job.time_limit_s, 1)
        record_run(run, job.timing, _host(job.plugins), Path(job.keep))
    for number in range(job.rounds):
        for one in prepared if number % 2 == 0 else reversed(prepared):
            _measure(one, job, 1)


def _measure(one: _Prepared, job: Job, runs: int) -> None:
    if one.state != "ok":
        return
    run = TimedRun(one.command, Path(job.working_directory), job.time_limit_s, runs)
    try:
        times = timed_runs(run, job.timing, lambda: _host(job.plugins))
    except TimeLimitError as error:
        one.fail("time_limit", error.fact)
    except TimesUnknownError as error:
        one.fail("no_time", error.fact)
    except ApplicationError as error:
        one.fail("failed", error.fact)
    except (InterruptedRunError, MissingError, PluginError, DeviceMismatchError):
        raise
    except BadDataError as error:
        one.fail("no_time", error.fact)
    except RplError as error:
        one.fail("failed", error.fact)
    else:
        one.times_ms += times.times_ms
        one.origin = times.origin


def answer_job(argument: str, device: str) -> str:
    """In a worker: ``run_job`` as a task, which takes and gives text. Raises what that raises."""
    return json.dumps(run_job(Job.model_validate_json(argument), device).model_dump(mode="json"))


@lru_cache(maxsize=1)
def _host(plugins: PluginChoice) -> PluginHost:
    """The plugins of this worker, found once for all jobs that want the same."""
    from rpl_core.cli.session import Session

    return Session(
        plugin_modules=plugins.modules, disabled_plugins=plugins.disabled, config_file=plugins.config_file
    ).host
