"""The directory of one pass: empty before it, and searched for recordings after it."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from rpl_core.errors import UsageError
from rpl_core.process.storage import make_directory, storage_error
from rpl_rocprofv3.collector.tool_version import OutputFormat

_SUFFIXES = {OutputFormat.ROCPD: (".db",), OutputFormat.CSV: (".csv",)}
#: What rocprofv3 replaces in the names of directories: %key%, %h, $ENV{X}, %q{X}, {key}
#: (docs/reference/formats.md, 4.3).
_REPLACED = re.compile(r"%\w+%|%[hpjrs]|%q\{|\$ENV\{|%env\{|\{\w+\}")


def prepare_directory(directory: Path) -> None:
    """Make ``directory``, or raise ``UsageError`` if it can't hold exactly one recording.

    A file that is there already would be taken for the result of this pass.
    """
    if match := _REPLACED.search(str(directory)):
        raise UsageError(
            f"the path of the run directory holds {match[0]!r}, which rocprofv3 replaces by something else",
            next_step="choose another one with -o DIR",
        )
    make_directory(directory)
    try:
        occupied = any(directory.iterdir())
    except OSError as error:
        raise storage_error(directory, error) from error
    if occupied:
        raise UsageError(
            f"{directory} is not empty, and a recording of this pass could not be told from what is there",
            next_step="choose a fresh directory with -o DIR",
        )


def recorded_files(directory: Path, output: OutputFormat) -> tuple[Path, ...]:
    """Recordings anywhere below ``directory``, sorted. Links are not followed: they may lead out of it."""
    found: list[Path] = []
    for folder, subfolders, names in os.walk(directory):
        subfolders.sort()
        for name in names:
            path = Path(folder) / name
            if name.endswith(_SUFFIXES[output]) and _is_regular(path):
                found.append(path)
    return tuple(sorted(found))


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
