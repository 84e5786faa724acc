"""Finding out before anything is created that a command can't be started."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence

from rpl_core.errors import MissingError, UsageError


def require_program(command: Sequence[str]) -> None:
    """Raise ``UsageError`` or ``MissingError`` unless the first word is a program on this machine.

    A profiler would only show a traceback of its own for a misspelt application.
    """
    if not command or not command[0]:
        raise UsageError(
            "no application was given", next_step="put it behind `--`: rpl profile -- ./app args"
        )
    program = command[0]
    if shutil.which(program) is not None:
        return
    shown = shlex.quote(program)
    if os.sep in program and os.path.isdir(program):  # noqa: PTH112 a word of the user, not a path of ours
        raise UsageError(f"{shown} is a directory, not a program")
    if os.sep in program and os.path.exists(program):  # noqa: PTH110 as above
        raise UsageError(f"{shown} is not an executable file", next_step=f"run `chmod +x {shown}`")
    where = "there is no such file" if os.sep in program else "it is not on PATH"
    hint = None if os.sep in program else f"for a file in this directory write ./{shown}"
    raise MissingError(f"cannot run {shown}: {where}", next_step=hint)
