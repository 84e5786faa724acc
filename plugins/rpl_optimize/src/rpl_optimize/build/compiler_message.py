"""Find the line of a build's output that says why it failed."""

from __future__ import annotations

import re

from rpl_core.text.safety import printable, shorten

_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
#: Linkers name what is missing without the word "error": GNU ld, gold.
_ERROR = re.compile(
    r"\berror\b(?:\(s\))?:|\bundefined reference to\b|\bundefined symbol\b|No rule to make target"
)
#: What only repeats that something before it failed.
_LATER = re.compile(r"^(?:make|gmake|ninja)(?:\[\d+\])?:|linker command failed|ld returned \d+ exit status")
_WIDTH = 400


class FirstError:
    """Takes the lines of a build one by one; ``text`` is its first error, or ``None``."""

    def __init__(self) -> None:
        self._error: str | None = None
        self._later: str | None = None
        self._last: str | None = None

    def take(self, line: str) -> None:
        plain = _COLOUR.sub("", line).strip()
        if not plain:
            return
        self._last = plain
        if self._error is None and _LATER.search(plain) is None and _ERROR.search(plain):
            self._error = plain
        elif self._later is None and _LATER.search(plain):
            self._later = plain

    @property
    def text(self) -> str | None:
        """The first error of a compiler or linker, else what the build system or the last line says."""
        found = self._error or self._later or self._last
        return None if found is None else shorten(printable(found), _WIDTH)
