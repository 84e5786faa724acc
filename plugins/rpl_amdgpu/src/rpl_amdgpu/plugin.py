"""What AMD device plugins share: a check of this machine's GPU, and the name of a plugin that is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.doctor import DoctorCheck

RPL_API = 2


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_amdgpu.detection import DevicePackageAnalyzer

    return (DevicePackageAnalyzer(),)


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    from rpl_amdgpu.detection import DevicePluginCheck, known_architectures

    return (DevicePluginCheck(known_architectures),)
