"""Doctor checks tell what is installed, what is missing and what to do about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum

from rpl_core.values import frozen


class DoctorStatus(str, Enum):
    OK = "ok"
    MISSING = "missing"
    BROKEN = "broken"


@frozen
class DoctorReport:
    """``needed_for`` says what does not work without it; ``remedy`` is a command or an instruction."""

    status: DoctorStatus
    fact: str
    needed_for: str = ""
    remedy: str | None = None


class DoctorCheck(ABC):
    """One thing that ``rpl doctor`` looks at."""

    name: str
    summary: str

    @abstractmethod
    def check(self) -> DoctorReport:
        """Look, without changing anything and within a second or two."""
