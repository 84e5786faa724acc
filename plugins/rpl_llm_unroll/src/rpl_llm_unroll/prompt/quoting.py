"""Text of others inside a prompt: fenced so that it can't end its fence, or on one line without controls."""

from __future__ import annotations

import re

from rpl_core.text.safety import printable, shorten

_RUNS = re.compile(r"`{3,}")
_LONGEST_NAME = 240
_FOLDERS = re.compile(r"(?<![\w.<\"])/(?:[\w.@+~-]+/)+")


def fenced(text: str, language: str = "") -> str:
    """``text`` as a code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in _RUNS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


def inline(text: str, width: int = _LONGEST_NAME) -> str:
    """A name or sentence from a recording as one quoted line: no controls, no backticks, bounded."""
    one_line = " ".join(printable(text).replace("`", "'").split())
    return f"`{shorten(one_line, width)}`"


def sentence(text: str, width: int = _LONGEST_NAME) -> str:
    """The same without quotes, for reasons and evidence that rpl wrote itself around foreign names."""
    return inline(text, width).strip("`")


def without_folders(text: str) -> str:
    """``text`` with absolute paths cut down to file names: the user's folders are nobody's business."""
    return _FOLDERS.sub("", text)
