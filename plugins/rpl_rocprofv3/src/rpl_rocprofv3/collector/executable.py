"""Where rocprofv3 is on this machine."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from rpl_core.errors import MissingError

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
    found = shutil.which(name)
    if found is None:
        raise MissingError(
            f"{origin} names {name!r}, which is no executable", next_step="correct or unset it"
        )
    return Path(found).absolute()


def _installed(environment: Mapping[str, str], opt: Path) -> list[Path]:
    prefixes = [Path(environment["ROCM_PATH"])] if environment.get("ROCM_PATH") else []
    versioned = sorted(opt.glob("rocm-*"), key=_version_key, reverse=True)
    return [prefix.absolute() / "bin" / _NAME for prefix in (*prefixes, opt / "rocm", *versioned)]


def _version_key(prefix: Path) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", prefix.name)], prefix.name


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
