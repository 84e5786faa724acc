"""What ``rpl doctor`` looks at for collecting: rocprofv3, its output format, the GPU, its counters."""

from __future__ import annotations

import grp
import os
from pathlib import Path

from rpl_core.errors import RplError
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.process import ProcessRequest, run_command
from rpl_rocprofv3.collector.tool import (
    OutputFormat,
    ToolVersion,
    detect_version,
    profiling_environment,
    require_rocprofv3,
)

_KFD = Path("/dev/kfd")
_ANY_COUNTER = "SQ_WAVES"  # every architecture that has counters has this one
_LIST_LIMIT_S = 5.0


def all_checks(executable: str | None) -> tuple[DoctorCheck, ...]:
    """Checks for the configured ``executable``, or for the one that is found."""
    return (RocprofCheck(executable), RocpdCheck(executable), GpuAccessCheck(), CountersCheck(executable))


class RocprofCheck(DoctorCheck):
    """rocprofv3 is there and answers."""

    name = "rocprofv3"
    summary = "the profiler is installed"

    def __init__(self, executable: str | None) -> None:
        self._executable = executable

    def check(self) -> DoctorReport:
        needed_for = "rpl profile (recordings can be analysed without it)"
        try:
            path, version = _rocprofv3(self._executable)
        except RplError as error:
            return DoctorReport(DoctorStatus.MISSING, error.fact, needed_for, error.next_step)
        if not version.known:
            return DoctorReport(
                DoctorStatus.BROKEN,
                f"{path} does not tell its version",
                needed_for,
                f"run `{path} --version` and look at its messages",
            )
        return DoctorReport(DoctorStatus.OK, f"{version} at {path}", needed_for)


class RocpdCheck(DoctorCheck):
    """The profiler can write rocpd databases."""

    name = "rocpd"
    summary = "recordings can be written as rocpd databases"

    def __init__(self, executable: str | None) -> None:
        self._executable = executable

    def check(self) -> DoctorReport:
        needed_for = "complete recordings; from CSV files some metrics and the process identity are missing"
        try:
            _, version = _rocprofv3(self._executable)
        except RplError:
            return DoctorReport(
                DoctorStatus.MISSING,
                "there is no rocprofv3",
                needed_for,
                "install rocprofv3 of ROCm 7.0 or newer",
            )
        if version.output_format is OutputFormat.CSV:
            return DoctorReport(
                DoctorStatus.MISSING,
                f"{version} writes CSV only",
                needed_for,
                "install ROCm 7.0 or newer (7.2 advised)",
            )
        return DoctorReport(DoctorStatus.OK, f"{version} writes rocpd", needed_for)


class GpuAccessCheck(DoctorCheck):
    """The driver is loaded and this user may use the GPU."""

    name = "gpu-access"
    summary = "this user may use an AMD GPU"

    def __init__(self, device: Path = _KFD) -> None:
        self._device = device

    def check(self) -> DoctorReport:
        needed_for = "running GPU programs"
        if not self._device.exists():
            return DoctorReport(
                DoctorStatus.MISSING,
                f"there is no {self._device}",
                needed_for,
                "load the amdgpu driver; in a container pass --device=/dev/kfd --device=/dev/dri",
            )
        if not os.access(self._device, os.R_OK | os.W_OK):
            group = _owning_group(self._device)
            return DoctorReport(
                DoctorStatus.BROKEN,
                f"this user may not open {self._device}",
                needed_for,
                f"join its group: sudo usermod -aG {group} $USER, then log in again",
            )
        return DoctorReport(DoctorStatus.OK, f"{self._device} can be opened", needed_for)


class CountersCheck(DoctorCheck):
    """The GPU offers hardware counters."""

    name = "counters"
    summary = "hardware counters can be listed"

    def __init__(self, executable: str | None, device: Path = _KFD) -> None:
        self._executable = executable
        self._device = device

    def check(self) -> DoctorReport:
        needed_for = "--roofline and every metric from counters"
        access = GpuAccessCheck(self._device).check()
        if access.status is not DoctorStatus.OK:
            return DoctorReport(DoctorStatus.MISSING, "no GPU can be asked", needed_for, access.remedy)
        try:
            path, _ = _rocprofv3(self._executable)
            lines = _listed(path)
        except RplError as error:
            return DoctorReport(DoctorStatus.MISSING, error.fact, needed_for, error.next_step)
        if not any(_ANY_COUNTER in line for line in lines):
            return DoctorReport(
                DoctorStatus.BROKEN,
                f"`{path} --list-avail` lists no {_ANY_COUNTER}",
                needed_for,
                "check that the ROCm version supports this GPU, and the messages of that command",
            )
        return DoctorReport(DoctorStatus.OK, "rocprofv3 lists hardware counters", needed_for)


def _rocprofv3(configured: str | None) -> tuple[Path, ToolVersion]:
    path = require_rocprofv3(os.environ, configured)
    return path, detect_version(path, profiling_environment(os.environ))


def _listed(executable: Path) -> list[str]:
    lines: list[str] = []
    request = ProcessRequest(
        (str(executable), "--list-avail"),
        environment=profiling_environment(os.environ),
        time_limit_s=_LIST_LIMIT_S,
        what="`rocprofv3 --list-avail`",
    )
    run_command(request, lines.append)
    return lines


def _owning_group(path: Path) -> str:
    try:
        return grp.getgrgid(path.stat().st_gid).gr_name
    except (KeyError, OSError):  # a group that only the host of a container knows
        return "render"
