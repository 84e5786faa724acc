"""The native program that does the work: where it is, and one call of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "rpl-emu"
#: In a build folder, in the part of it for the emulator, and where the program itself lies.
_PLACES = ("native/emu", "emu", ".")
_REMEDY = (
    "pip install rpl-native, or in a checkout of rpl: cmake -S . -B build && cmake --build build -j, "
    "then RPL_EMU_FOLDER=build"
)
FOLDER_VARIABLE = "RPL_EMU_FOLDER"
LLVM_VARIABLE = "RPL_EMU_LLVM"
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
    if folder:
        for place in _PLACES:
            if (found := Path(folder) / place / PROGRAM).is_file():
                return found.resolve()
        raise MissingError(f"{PROGRAM} is not in {folder}", next_step=_REMEDY)
    try:
        from rpl_native import path_of
    except ModuleNotFoundError:
        raise MissingError("the emulator is not installed: rpl-native is absent", next_step=_REMEDY) from None
    found = path_of(PROGRAM)
    if not found.is_file():
        raise MissingError(f"the installed rpl-native has no {PROGRAM}", next_step=_REMEDY)
    return found


def call(words: Sequence[str], *, seconds: float | None = None) -> Answer:
    """Run the program; its errors of usage, input and absence become rpl's own.

    A code object is untrusted: the program runs apart from rpl, and is ended if its own limit fails.
    """
    llvm = os.environ.get(LLVM_VARIABLE)
    command = [str(find_program()), *words, *(["--llvm", llvm] if llvm else [])]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
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
