"""Is there room for recordings? Replace this check by what your plugin is about."""

from __future__ import annotations

import shutil
from pathlib import Path

from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus

#: Chosen: a counter recording of a long application takes a few hundred MB.
NEEDED_BYTES = 1 << 30


class FreeSpaceCheck(DoctorCheck):
    """The disk of the working directory has room for recordings."""

    name = "{{ cookiecutter.plugin_name }}-free-space"
    summary = "Room for recordings in the working directory."

    def check(self) -> DoctorReport:
        free_bytes = shutil.disk_usage(Path.cwd()).free
        fact = f"{free_bytes / (1 << 30):.1f} GiB free in the working directory"
        if free_bytes >= NEEDED_BYTES:
            return DoctorReport(DoctorStatus.OK, fact)
        return DoctorReport(
            DoctorStatus.MISSING, fact, needed_for="recording long applications", remedy="free some space"
        )
