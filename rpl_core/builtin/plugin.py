"""The core's own contributions, through the same hooks as everybody else's."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core import hookimpl
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.document import DocumentContract
    from rpl_core.interfaces.executor import Executor

RPL_API = 2


class InterpreterCheck(DoctorCheck):
    name = "python"
    summary = "the Python interpreter"

    def check(self) -> DoctorReport:
        return DoctorReport(DoctorStatus.OK, f"Python {platform.python_version()} ({sys.executable})")


class RunsDirectoryCheck(DoctorCheck):
    name = "runs-directory"
    summary = "a place for run directories"

    def check(self) -> DoctorReport:
        folder = Path.cwd()
        if os.access(folder, os.W_OK):
            return DoctorReport(DoctorStatus.OK, f"{folder} is writable")
        return DoctorReport(
            DoctorStatus.MISSING,
            f"{folder} is not writable",
            "`rpl profile` without -o",
            "change to a writable folder, or give one with -o",
        )


@hookimpl
def rpl_collectors() -> tuple[Collector, ...]:
    from rpl_core.builtin.timing_only import TimingOnlyCollector

    return (TimingOnlyCollector(),)


@hookimpl
def rpl_executors() -> tuple[Executor, ...]:
    from rpl_core.executors import DaskExecutor, LocalExecutor

    return (LocalExecutor(), DaskExecutor())


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    return (InterpreterCheck(), RunsDirectoryCheck())


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_core.run_directory import RunContract

    return (RunContract(),)
