"""What rocprofv3 says while it runs, recognised line by line.

Its log mixes with the application's output, and good runs hold E and W lines ("Opened result file" is
logged as an error): a line explains a failure, it is never one by itself (docs/reference/formats.md, 4.6).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from enum import Enum

_TAIL_LINES = 20
_KEPT_CHARACTERS = 300
_MOST_NOTED = 100


class Problem(str, Enum):
    """A kind of trouble that a line of the log stands for."""

    UNKNOWN_OPTION = "unknown_option"
    BROKEN_INSTALLATION = "broken_installation"
    OVER_CAPACITY = "over_capacity"
    COUNTERS_NOT_FOUND = "counters_not_found"
    COUNTERS_NOT_LOCKED = "counters_not_locked"
    NO_SPACE = "no_space"
    NO_GPU = "no_gpu"
    INTEGRATED_GPU = "integrated_gpu"
    STREAM_LOOKUP = "stream_lookup"


#: In the words of rocprofv3.py, rocprofiler-sdk, SQLite, HIP and HSA. A Python application may reject its
#: own options in the same words as rocprofv3, so that message must carry rocprofv3's name.
_PATTERNS = {
    Problem.UNKNOWN_OPTION: r"^rocprofv3[\w.-]*: error: (?:unrecognized arg|argument .*: invalid choice)",
    Problem.BROKEN_INSTALLATION: r"Fatal error: Failed to resolve path",
    Problem.OVER_CAPACITY: r"exceeds the capabilities of the hardware|ERROR_EXCEEDS_HW_LIMIT",
    Problem.COUNTERS_NOT_FOUND: r"Unable to find all counters for agent",
    Problem.COUNTERS_NOT_LOCKED: r"could not be locked for profiling due to lack of permissions",
    Problem.NO_SPACE: r"No space left on device|database or disk is full|Disk quota exceeded",
    Problem.NO_GPU: r"no ROCm-capable device|hipErrorNoDevice|(?:open|access)[^\n]*/dev/kfd",
    Problem.INTEGRATED_GPU: r"unordered_map::at",
    Problem.STREAM_LOOKUP: r"failed to retrieve stream ID",
}
_COMPILED = {problem: re.compile(pattern) for problem, pattern in _PATTERNS.items()}
_OPENED = re.compile(r"Opened result file: (.*?)(?: \(UUID=[^)]*\))?\s*$")
_MISSING_COUNTERS = re.compile(
    r"for agent (?P<agent>.*?) in \[(?P<wanted>[^\]]*)\]\.? *Found: \[(?P<found>[^\]]*)\]"
)


class LogWatch:
    """A line sink that keeps what matters and passes every line on to each of ``forward``.

    ``first`` has the first line of each problem, ``opened_files`` the result files that were announced,
    ``missing_counters`` the names that an agent lacks, each with that agent.
    """

    def __init__(self, *forward: Callable[[str], None]) -> None:
        self.first: dict[Problem, str] = {}
        self.opened_files: list[str] = []
        self.missing_counters: dict[str, str] = {}
        self._forward = forward
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def __call__(self, line: str) -> None:
        if line.strip():
            self._tail.append(line[:_KEPT_CHARACTERS])
        for problem, pattern in _COMPILED.items():
            if problem not in self.first and pattern.search(line):
                self.first[problem] = line[:_KEPT_CHARACTERS]
        self._note_file(line)
        self._note_missing_counters(line)
        for sink in self._forward:
            sink(line)

    def last_line(self) -> str | None:
        """The last thing said that is not about result files."""
        said = [
            line for line in self._tail if not _OPENED.search(line) and "writing SQL database" not in line
        ]
        return said[-1].strip() if said else None

    def _note_file(self, line: str) -> None:
        if len(self.opened_files) < _MOST_NOTED and (match := _OPENED.search(line)):
            self.opened_files.append(match[1])

    def _note_missing_counters(self, line: str) -> None:
        if not (match := _MISSING_COUNTERS.search(line)):
            return
        found = set(_names(match["found"]))
        for name in _names(match["wanted"]):
            if name not in found and len(self.missing_counters) < _MOST_NOTED:
                self.missing_counters.setdefault(name, match["agent"])


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[\s,]+", text) if name]
