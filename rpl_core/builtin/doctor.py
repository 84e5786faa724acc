"""What the core itself needs: an interpreter of the right age and a place to write."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus


class InterpreterCheck(DoctorCheck):
    name = "python"
    summary = "the Python interpreter"

    def check(self) -> DoctorReport:
        return DoctorReport(DoctorStatus.OK, f"Python {platform.python_version()} ({sys.executable})")


class RunsDirectoryCheck(DoctorCheck):
    name = "runs-directory"
    summary = "a place for run directories"

    def check(self) -> DoctorReport:
        folder = Path.cwd()
        if os.access(folder, os.W_OK):
            return DoctorReport(DoctorStatus.OK, f"{folder} is writable")
        return DoctorReport(
            DoctorStatus.MISSING,
            f"{folder} is not writable",
            "`rpl profile` without -o",
            "change to a writable folder, or give one with -o",
        )
