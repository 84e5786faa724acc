"""Where the trace decoder of AMD is on this machine.

It is under AMD's end-user licence: rpl looks for it, and neither ships nor downloads it
(docs/reference/thread-trace.md, 4.4).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rpl_core.errors import MissingError

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
    found = [Path(p) for name in listed for p in environment.get(name, "").split(os.pathsep) if p]
    prefixes = [executable.resolve().parent.parent] if executable else []
    prefixes += [Path(environment["ROCM_PATH"])] if environment.get("ROCM_PATH") else []
    prefixes += [opt / "rocm", *sorted(opt.glob("rocm-*"), reverse=True)]
    return [*found, *(prefix / "lib" for prefix in prefixes)]


def _holds_decoder(folder: Path) -> bool:
    try:
        return any(path.is_file() for path in folder.glob(_PATTERN))
    except OSError:
        return False
