"""rocprofv3 for rpl: its collector, the readers of what it writes, and checks of its installation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.reader import Reader

RPL_API = 1

_EXECUTABLE_SETTING = "plugins.rocprofv3.executable"
_settings: dict[str, str] = {}


@hookimpl
def rpl_configure(config: Mapping[str, Any]) -> None:
    _settings.clear()
    executable = config.get(_EXECUTABLE_SETTING)
    if executable is not None:
        _settings[_EXECUTABLE_SETTING] = str(executable)


@hookimpl
def rpl_collectors() -> tuple[Collector, ...]:
    from rpl_rocprofv3.collector.rocprof import RocprofCollector

    return (RocprofCollector(_settings.get(_EXECUTABLE_SETTING)),)


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_rocprofv3.readers.catalog import all_readers

    return all_readers()


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    from rpl_rocprofv3.doctor import all_checks

    return all_checks(_settings.get(_EXECUTABLE_SETTING))
