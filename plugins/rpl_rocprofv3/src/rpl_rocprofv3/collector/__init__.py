"""rocprofv3 on this machine: its place, version and environment, and what ``rpl doctor`` says of them."""

from __future__ import annotations

import grp
import os
import re
import shutil
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from rpl_core.errors import InterruptedRunError, MissingError, RplError
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.process import ProcessRequest, run_command
from rpl_core.values import frozen

# Where rocprofv3 is on this machine.

#: Names the executable and wins over the configuration and every search.
OVERRIDE_VARIABLE = "RPL_ROCPROFV3"
_NAME = "rocprofv3"
_OPT = Path("/opt")


def find_rocprofv3(
    environment: Mapping[str, str], configured: str | None = None, opt: Path = _OPT
) -> Path | None:
    """The executable as an absolute path, or ``None``.

    Order: ``RPL_ROCPROFV3``, ``configured``, PATH, ``ROCM_PATH``/bin, ``opt``/rocm*/bin (plain ``rocm``
    first, then the newest). An override that names no executable raises ``MissingError``: falling back to
    another installation would record with a tool that the user did not choose.
    """
    override = environment.get(OVERRIDE_VARIABLE)
    if override:
        return _chosen(override, f"the environment variable {OVERRIDE_VARIABLE}")
    if configured:
        return _chosen(configured, "the setting plugins.rocprofv3.executable")
    on_path = shutil.which(_NAME, path=environment.get("PATH", os.defpath))
    if on_path is not None:
        return Path(on_path).absolute()
    return next((path for path in _installed(environment, opt) if _is_executable(path)), None)


def require_rocprofv3(environment: Mapping[str, str], configured: str | None = None) -> Path:
    """``find_rocprofv3``, or ``MissingError`` with what to do."""
    executable = find_rocprofv3(environment, configured)
    if executable is None:
        raise MissingError(
            "rocprofv3 was not found on PATH, in ROCM_PATH/bin or in /opt/rocm*/bin",
            cause="ROCm is not installed here, or without its package rocprofiler-sdk",
            next_step=(
                "install rocprofiler-sdk of ROCm 7 or name the executable in RPL_ROCPROFV3; "
                "without it, `--no-rocprof` times the process and `--from PATH` reads a recording"
            ),
        )
    return executable


def _chosen(name: str, origin: str) -> Path:
    program = shutil.which(name)
    if program is None:
        raise MissingError(
            f"{origin} names {name!r}, which is no executable", next_step="correct or unset it"
        )
    return Path(program).absolute()


def _installed(environment: Mapping[str, str], opt: Path) -> list[Path]:
    prefixes = [Path(environment["ROCM_PATH"])] if environment.get("ROCM_PATH") else []
    versioned = sorted(opt.glob("rocm-*"), key=_version_key, reverse=True)
    return [prefix.absolute() / "bin" / _NAME for prefix in (*prefixes, opt / "rocm", *versioned)]


def _version_key(prefix: Path) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", prefix.name)], prefix.name


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


# Which rocprofv3 this is, and therefore which file format it can write.
#
# rocpd arrived with ROCm 7.0 (rocprofiler-sdk 1.0.0); ROCm 6.2 to 6.4 (SDK 0.4 to 0.6) write CSV
# (reference: docs/reference/formats.md, 2.8). ``rocprofv3 --version`` prints ``key: value`` lines.

_FIRST_ROCPD_ROCM = (7, 0)
_FIRST_ROCPD_SDK = (1, 0)
_NUMBERS = r"(\d+(?:\.\d+)+)"
_SDK_LINE = re.compile(rf"^\s*version\s*:\s*v?{_NUMBERS}")
_ROCM_LINE = re.compile(rf"^\s*rocm_version\s*:\s*{_NUMBERS}")
_ANSWER_LIMIT_S = 10.0
_VERSION_FILE_BYTES = 200

Numbers = tuple[int, ...]


class OutputFormat(str, Enum):
    """Value of ``--output-format``."""

    ROCPD = "rocpd"
    CSV = "csv"
    JSON = "json"  # of counter passes only


@frozen
class ToolVersion:
    """Versions of the SDK and of ROCm; ``None`` where nothing on this machine tells."""

    sdk: Numbers | None = None
    rocm: Numbers | None = None

    @property
    def known(self) -> bool:
        return self.sdk is not None or self.rocm is not None

    @property
    def output_format(self) -> OutputFormat:
        """rocpd unless the version is known to be older: an unknown one fails with a clear message."""
        if self.rocm is not None:
            old = self.rocm < _FIRST_ROCPD_ROCM
        else:
            old = self.sdk is not None and self.sdk < _FIRST_ROCPD_SDK
        return OutputFormat.CSV if old else OutputFormat.ROCPD

    def __str__(self) -> str:
        sdk = "of unknown version" if self.sdk is None else _shown(self.sdk)
        return f"rocprofv3 {sdk}" + ("" if self.rocm is None else f" (ROCm {_shown(self.rocm)})")


def offers_kernel_replay(executable: Path, environment: Mapping[str, str]) -> bool:
    """Whether its help names ``--replay-mode`` (rocprofiler-sdk 1.4.1 and later). Touches no GPU."""
    return any("--replay-mode" in line for line in _answer(executable, environment, "--help"))


def detect_version(executable: Path, environment: Mapping[str, str]) -> ToolVersion:
    """Ask the tool, then its installation. Touches no GPU. Raises only ``InterruptedRunError``."""
    sdk, rocm = _asked(executable, environment)
    return ToolVersion(sdk=sdk, rocm=rocm or _installed_rocm(executable))


def _asked(executable: Path, environment: Mapping[str, str]) -> tuple[Numbers | None, Numbers | None]:
    lines = _answer(executable, environment, "--version")
    return _first(_SDK_LINE, lines), _first(_ROCM_LINE, lines)


def _answer(executable: Path, environment: Mapping[str, str], option: str) -> list[str]:
    lines: list[str] = []
    request = ProcessRequest((str(executable), option), environment=environment, time_limit_s=_ANSWER_LIMIT_S)
    try:
        run_command(request, lines.append)
    except InterruptedRunError:
        raise
    except RplError:  # it hangs or can't start: the recording will say why, here only its answer is missing
        return []
    return lines


def _installed_rocm(executable: Path) -> Numbers | None:
    prefix = executable.resolve().parent.parent
    try:
        with (prefix / ".info" / "version").open(encoding="ascii", errors="replace") as stream:
            text = stream.read(_VERSION_FILE_BYTES)
    except OSError:
        text = ""
    match = re.match(_NUMBERS, text) or re.match(rf"rocm-{_NUMBERS}", prefix.name)
    return None if match is None else _numbers(match)


def _first(pattern: re.Pattern[str], lines: list[str]) -> Numbers | None:
    for line in lines:
        if match := pattern.match(line):
            return _numbers(match)
    return None


def _numbers(match: re.Match[str]) -> Numbers | None:
    numbers = tuple(int(part) for part in match[1].split("."))
    return numbers if any(numbers) else None  # builds outside a ROCm release say 0.0.0


def _shown(numbers: Numbers) -> str:
    return ".".join(map(str, numbers))


# The environment of a profiled application: the user's, without what another profiler left in it.

#: Settings of rocprofv3, of the SDK and of older profilers. An inherited ROCPROF_OUTPUT_FORMAT would be
#: appended to rather than replaced, inherited counters would be counted (docs/reference/formats.md, 4.5).
_PREFIXES = ("ROCPROF_", "ROCPROFILER_", "ROCP_", "ROCTRACER_")
_NAMES = frozenset({"HSA_TOOLS_LIB", "HSA_TOOLS_REPORT_LOAD_FAILURE", "HSA_TOOLS_DISABLE_REGISTER"})
_PRELOAD = "LD_PRELOAD"
#: Libraries that rocprofv3 preloads; they are there when rpl itself runs under it.
_PRELOADED_PROFILERS = ("librocprofiler", "librocprofv3", "libroctracer")


def profiling_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """A copy of ``inherited`` without settings and preloaded libraries of profilers."""
    environment = {name: value for name, value in inherited.items() if not _is_profiler_setting(name)}
    if _PRELOAD in environment:
        libraries = _without_profilers(environment.pop(_PRELOAD))
        if libraries:
            environment[_PRELOAD] = libraries
    return environment


def _is_profiler_setting(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


def _without_profilers(preload: str) -> str:
    libraries = preload.replace(":", " ").split()  # ld.so(8) takes both separators
    return ":".join(
        library for library in libraries if not library.rpartition("/")[2].startswith(_PRELOADED_PROFILERS)
    )


# The checks of ``rpl doctor``.

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
