"""Options and settings of thread traces, where the decoder is, and what ``rpl doctor`` says of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rpl_core.config import flag, positive, positive_int
from rpl_core.errors import MissingError, UsageError
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.options import CommandOption, OptionForm, SettingKind
from rpl_core.values import frozen

_COMMANDS = ("profile",)

DEEP_ANALYSIS: CommandOption[bool] = CommandOption(
    name="deep-analysis",
    commands=_COMMANDS,
    group="Thread traces",
    parse=flag,
    default=False,
    help="Trace the instructions of the most critical kernels in passes of their own.",
    form=OptionForm.FLAG,
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
    meaning="trace the instructions of the most critical kernels",
)
DEEP_TOP: CommandOption[int] = CommandOption(
    name="deep-top",
    commands=_COMMANDS,
    group="Thread traces",
    parse=positive_int,
    default=3,
    help="Kernels that --deep-analysis traces (default 3).",
    metavar="N",
    setting=True,
    kind=SettingKind.VALUE,
    meaning="kernels that a deep analysis traces",
)
DEEP_TIMEOUT: CommandOption[float | None] = CommandOption(
    name="deep-timeout",
    commands=_COMMANDS,
    group="Thread traces",
    parse=positive,
    default=None,
    help="Seconds that one thread trace may take.",
    metavar="S",
    setting=True,
    kind=SettingKind.VALUE,
    meaning="seconds that one thread trace may take",
)
OPTIONS = (DEEP_ANALYSIS, DEEP_TOP, DEEP_TIMEOUT)


# Settings of thread traces, where AMD's trace decoder is, and what ``rpl doctor`` says of it.


# Where the decoder is.

#: Names the folder (or the library itself) and wins over every search.
OVERRIDE_VARIABLE = "RPL_ATT_LIBRARY_PATH"
_PROFILER_VARIABLE = "ROCPROF_ATT_LIBRARY_PATH"
_PATTERN = "librocprof-trace-decoder.so*"
_OPT = Path("/opt")
REMEDY = (
    "install rocprof-trace-decoder (part of ROCm since 7.13, a package of its own before), "
    f"or name its folder in {OVERRIDE_VARIABLE}"
)


def find_decoder(
    environment: Mapping[str, str], executable: Path | None = None, opt: Path = _OPT
) -> Path | None:
    """The folder that holds the decoder library, or ``None``.

    Order: ``RPL_ATT_LIBRARY_PATH``, ``ROCPROF_ATT_LIBRARY_PATH``, LD_LIBRARY_PATH, the installation of
    ``executable``, ``ROCM_PATH``, ``opt``/rocm*. Raises ``MissingError`` for an override without it.
    """
    override = environment.get(OVERRIDE_VARIABLE)
    if override:
        folder = Path(override).parent if Path(override).is_file() else Path(override)
        if not _holds_decoder(folder):
            raise MissingError(
                f"{OVERRIDE_VARIABLE} names {override!r}, which holds no {_PATTERN}", next_step=REMEDY
            )
        return folder.absolute()
    return next((f.absolute() for f in _places(environment, executable, opt) if _holds_decoder(f)), None)


def library_in(folder: Path) -> Path:
    """The library in a folder that ``find_decoder`` returned; the name without a version comes first."""
    return min(path for path in folder.glob(_PATTERN) if path.is_file())


def _places(environment: Mapping[str, str], executable: Path | None, opt: Path) -> list[Path]:
    listed = (_PROFILER_VARIABLE, "LD_LIBRARY_PATH")
    listed_places = [Path(p) for name in listed for p in environment.get(name, "").split(os.pathsep) if p]
    prefixes = [executable.resolve().parent.parent] if executable else []
    prefixes += [Path(environment["ROCM_PATH"])] if environment.get("ROCM_PATH") else []
    prefixes += [opt / "rocm", *sorted(opt.glob("rocm-*"), reverse=True)]
    return [*listed_places, *(prefix / "lib" for prefix in prefixes)]


def _holds_decoder(folder: Path) -> bool:
    try:
        return any(path.is_file() for path in folder.glob(_PATTERN))
    except OSError:
        return False


# What the user may set about the recording of thread traces, in ``[plugins.att]`` of ``rpl.toml``.

#: Default target of rocprofv3 (docs/reference/thread-trace.md, 4.1); the collector aims again when no wave
#: runs there.
DEFAULT_TARGET_CU = 1
DEFAULT_ENGINE_MASK = 0x1
#: Typical value of the documentation of rocprofv3 (docs/reference/thread-trace.md, 4.1): 96 MB, shared by all
#: shader engines.
DEFAULT_BUFFER_BYTES = 0x6000000
#: Rate of the activity counters on gfx9, between the 8 of the help text and the 10 of the manual
#: (docs/reference/thread-trace.md, 4.1).
DEFAULT_ACTIVITY = 10
_PREFIX = "plugins.att."
#: Limits of the options (docs/reference/thread-trace.md, 4.1); those of the buffer are chosen.
_MAX_CU = 15
_MAX_MASK = 0xFFFFFFFF
_MIN_BUFFER_BYTES = 1 << 20
_MAX_BUFFER_BYTES = 1 << 34


@frozen
class AttSettings:
    """``executable`` and ``library_path`` are searched for when they are ``None``."""

    target_cu: int = DEFAULT_TARGET_CU
    shader_engine_mask: int = DEFAULT_ENGINE_MASK
    buffer_bytes: int = DEFAULT_BUFFER_BYTES
    activity: int = DEFAULT_ACTIVITY
    library_path: str | None = None
    executable: str | None = None

    def decoder_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` with ``library_path`` where the environment names no decoder itself."""
        named = {} if self.library_path is None else {OVERRIDE_VARIABLE: self.library_path}
        return {**named, **environment}


def settings_from(config: Mapping[str, Any]) -> AttSettings:
    """The settings in ``config``. Raises ``UsageError`` for an impossible value."""
    path = config.get(f"{_PREFIX}library-path")
    executable = config.get("plugins.rocprofv3.executable")
    return AttSettings(
        target_cu=_number(config, "target-cu", DEFAULT_TARGET_CU, 0, _MAX_CU),
        shader_engine_mask=_number(config, "shader-engine-mask", DEFAULT_ENGINE_MASK, 1, _MAX_MASK),
        buffer_bytes=_number(
            config, "buffer-bytes", DEFAULT_BUFFER_BYTES, _MIN_BUFFER_BYTES, _MAX_BUFFER_BYTES
        ),
        activity=_number(config, "activity", DEFAULT_ACTIVITY, 0, 16),
        library_path=None if path is None else str(path),
        executable=None if executable is None else str(executable),
    )


def _number(config: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = config.get(_PREFIX + name, default)
    try:
        number = int(value, 0) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        raise UsageError(f"the setting {_PREFIX}{name} is no number: {value!r}") from None
    if isinstance(value, bool) or not low <= number <= high:
        raise UsageError(f"the setting {_PREFIX}{name} must be from {low} to {high}, not {value!r}")
    return number


# What ``rpl doctor`` says about thread traces.

_NEEDED_FOR = "`rpl profile --deep-analysis` and raw .att files (decoded traces are read without it)"


class DecoderCheck(DoctorCheck):
    name = "trace-decoder"
    summary = "AMD's decoder of thread traces"

    def __init__(self, settings: AttSettings) -> None:
        self._settings = settings

    def check(self) -> DoctorReport:
        try:
            folder = find_decoder(self._settings.decoder_variables(os.environ))
        except MissingError as error:
            return DoctorReport(DoctorStatus.BROKEN, error.fact, _NEEDED_FOR, error.next_step)
        if folder is None:
            return DoctorReport(DoctorStatus.MISSING, "no trace decoder was found", _NEEDED_FOR, REMEDY)
        return DoctorReport(DoctorStatus.OK, f"trace decoder in {folder}")
