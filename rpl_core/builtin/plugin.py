"""The core's own contributions, through the same hooks as everybody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.document import DocumentContract

RPL_API = 1


@hookimpl
def rpl_collectors() -> tuple[Collector, ...]:
    from rpl_core.builtin.timing_only import TimingOnlyCollector

    return (TimingOnlyCollector(),)


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    from rpl_core.builtin.doctor import InterpreterCheck, RunsDirectoryCheck

    return (InterpreterCheck(), RunsDirectoryCheck())


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_core.run_directory.contract import RunContract

    return (RunContract(),)
