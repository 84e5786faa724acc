"""What somebody who wrote a name wrongly may have meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]

#: Names that are compared: those of a recording may be thousands, and comparing them takes time (chosen).
_MOST_NAMES = 2000
_LONGEST_NAME = 300


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question behind a complaint, such as "; did you mean 'time'?"; the empty text where nothing is alike.

    Case does not count. What ``word`` is a part of has been tried before, so a part is no answer here.
    """
    from difflib import get_close_matches  # not needed unless something goes wrong

    names = {name[:_LONGEST_NAME].lower(): name for name, _ in zip(known, range(_MOST_NAMES), strict=False)}
    alike = get_close_matches(word[:_LONGEST_NAME].lower(), names, 1)
    return f"; did you mean {names[alike[0]]!r}?" if alike else ""
