"""Which rocprofv3 this is, and therefore which file format it can write.

rocpd arrived with ROCm 7.0 (rocprofiler-sdk 1.0.0); ROCm 6.2 to 6.4 (SDK 0.4 to 0.6) write CSV
(reference: docs/reference/formats.md, 2.8). ``rocprofv3 --version`` prints ``key: value`` lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.process import ProcessRequest, run_command
from rpl_core.values import frozen

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
