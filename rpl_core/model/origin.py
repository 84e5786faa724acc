"""Where a number comes from and how exact it is: the two labels that every figure carries."""

from __future__ import annotations

from enum import Enum
from typing import Final

#: Name under which a writer that is no profiler says, inside what it writes, what origin it has.
ORIGIN_MARK: Final = "rpl_origin"
#: Begins the recorded command line of synthetic recordings.
SYNTHETIC_COMMAND_MARK: Final = "[synthetic, written by rpl] "


class Origin(str, Enum):
    """The three origins that are never mixed."""

    MEASURED = "measured"  # hardware
    MODELLED = "modelled"  # emulator or formula
    SYNTHETIC = "synthetic"  # a test or demo writer

    @classmethod
    def weakest(cls, origins: list[Origin]) -> Origin:
        """The origin of something derived from several: synthetic over modelled over measured."""
        for candidate in (cls.SYNTHETIC, cls.MODELLED):
            if candidate in origins:
                return candidate
        return cls.MEASURED


class Exactness(str, Enum):
    """How far a figure may be from the truth."""

    EXACT = "exact"
    LOWER_BOUND = "lower_bound"
    INTERVAL = "interval"  # value is the lower end, ``upper`` the other
    ESTIMATE = "estimate"
