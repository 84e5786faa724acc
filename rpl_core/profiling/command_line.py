"""The application's command as the user wrote it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rpl_core.errors import UsageError


def application_command(words: Sequence[str]) -> tuple[str, ...]:
    """The argument vector of the application.

    A single word with white space that names no file is split as a shell would split it
    (``"./app 100"``); nothing is expanded and no shell runs.
    """
    if not words:
        raise UsageError(
            "no application given", next_step="put it last: `rpl profile --device gfx942 -- ./app args`"
        )
    if len(words) > 1 or not any(c.isspace() for c in words[0]) or Path(words[0]).exists():
        return tuple(words)
    try:
        split = tuple(shlex.split(words[0]))
    except ValueError as error:
        raise UsageError(f"the application's command can't be split: {error}") from None
    if not split:
        raise UsageError("the application's command is empty")
    return split
