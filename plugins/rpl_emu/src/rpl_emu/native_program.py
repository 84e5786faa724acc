"""The native program that does the work: where it is, and one call of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.values import frozen
from rpl_emu.runtime_packages import with_llvm
from rpl_vmreplay.native_parts import NativePart, find_part

FOLDER_VARIABLE = "RPL_EMU_FOLDER"
LLVM_VARIABLE = "RPL_EMU_LLVM"
#: A runtime that was fetched, whose LLVM decodes instructions where the system has none.
RUNTIME_VARIABLE = "RPL_EMU_RUNTIME"
PROGRAM = NativePart(
    "rpl-emu", "emu", "the emulator", "`rpl emu`", "emulator", named_by=f"{FOLDER_VARIABLE}=build"
)
#: Beyond its own limit the program gets this long to end by itself.
_GRACE_S = 10.0

#: ``LAYOUT``: captured memory has to lie where the program itself does.
OK, FINDING, LAYOUT, MEMORY_FAULT, LIMIT = 0, 1, 3, 4, 124
_ERRORS: dict[int, type[RplError]] = {64: UsageError, 65: BadDataError, 69: MissingError}


@frozen
class Answer:
    """What one call gave. ``document`` is what it printed; a launch that stopped prints one too."""

    status: int
    document: Any
    messages: tuple[str, ...]


def find_program() -> Path:
    """Raises MissingError with the remedy."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return find_part(PROGRAM, Path(folder) if folder else None)


def command_of(words: Sequence[str]) -> list[str]:
    """With the program and the library that it is to take. Raises MissingError."""
    llvm = os.environ.get(LLVM_VARIABLE)
    return [str(find_program()), *words, *(["--llvm", llvm] if llvm else [])]


def environment() -> dict[str, str]:
    """Of the program and of what starts it."""
    root = None if RUNTIME_VARIABLE in os.environ else with_llvm()
    return {**os.environ, **({RUNTIME_VARIABLE: str(root)} if root else {})}


def call(words: Sequence[str], *, seconds: float | None = None) -> Answer:
    """Run the program; its errors of usage, input and absence become rpl's own.

    A code object is untrusted: the program runs apart from rpl, and is ended if its own limit fails.
    """
    try:
        done = subprocess.run(
            command_of(words),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=environment(),
            timeout=None if seconds is None else seconds + _GRACE_S,
        )
    except subprocess.TimeoutExpired:
        return Answer(LIMIT, None, ("the emulator did not end in time and was stopped",))
    messages = tuple(line.removeprefix("rpl-emu: ") for line in done.stderr.splitlines() if line)
    if done.returncode in _ERRORS:
        raise _error(done.returncode, messages)
    if done.returncode not in (OK, FINDING, LAYOUT, MEMORY_FAULT, LIMIT):
        raise RplError(
            f"the emulator ended with status {done.returncode}",
            cause=messages[0] if messages else "a fault of the emulator itself",
            next_step="report it with the code object",
        )
    return Answer(done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, messages)


def _error(status: int, messages: tuple[str, ...]) -> RplError:
    fact, _, next_step = (messages[0] if messages else "the emulator refused").partition(" Next: ")
    return _ERRORS[status](fact, next_step=next_step or None)
