"""rocprofv3 for rpl: its collector, the readers of what it writes, and checks of its installation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl
from rpl_core.interfaces.options import PluginSetting, SettingKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.reader import Reader

RPL_API = 2
_EXECUTABLE = PluginSetting("plugins.rocprofv3.executable", SettingKind.PROGRAM, "the profiler to run")
RPL_SETTINGS = (_EXECUTABLE,)


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_rocprofv3.options import OPTIONS

    return OPTIONS


@hookimpl
def rpl_collectors(config: Mapping[str, Any]) -> tuple[Collector, ...]:
    from rpl_rocprofv3.collector.rocprof import RocprofCollector

    return (RocprofCollector(_executable(config)),)


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_rocprofv3.readers.catalog import all_readers

    return all_readers()


@hookimpl
def rpl_doctor_checks(config: Mapping[str, Any]) -> tuple[DoctorCheck, ...]:
    from rpl_rocprofv3.collector import all_checks

    return all_checks(_executable(config))


def _executable(config: Mapping[str, Any]) -> str | None:
    """The configured profiler, or None to search for one."""
    executable = config.get(_EXECUTABLE.name)
    return None if executable is None else str(executable)
