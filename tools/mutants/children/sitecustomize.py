"""Makes the change of a trial where Python loads the module, or puts the markers of a map there.

Each Python process imports this first: ``trial.py`` and ``covering.py`` put this folder on PYTHONPATH, and
what is to be loaded into variables of the environment.
"""

from __future__ import annotations

import builtins
import json
import marshal
import os
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType


def load_instead(path: str, source: str) -> None:
    """From now on the module of ``path`` is ``source``."""
    # Compiled here, so that no cached byte code counts and none is written.
    _load({os.path.realpath(path): lambda: compile(source, path, "exec", dont_inherit=True)})


def _load(codes: dict[str, Callable[[], CodeType]]) -> None:
    read = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        code = codes.get(os.path.realpath(self.path))
        return read(self, fullname) if code is None else code()

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _note_tests(marks: str) -> Callable[[int], None]:
    """What a marker calls: writes its number and the running test, each pair once in a process."""
    known: set[tuple[int, str]] = set()
    # As they are now: tests replace some of them.
    get, opened, write, close = os.environ.get, os.open, os.write, os.close

    def ran(number: int) -> None:
        test = get("PYTEST_CURRENT_TEST")
        if test is None or (number, test) in known:
            return
        known.add((number, test))
        try:
            descriptor = opened(marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            write(descriptor, f"{number} {test}\n".encode())
            close(descriptor)
        except OSError:
            pass  # a test of what is out of bounds or of too many files

    return ran


if __name__ == "sitecustomize" and "RPL_CHANGED_SOURCE" in os.environ:
    load_instead(
        os.environ["RPL_CHANGED_FILE"], Path(os.environ["RPL_CHANGED_SOURCE"]).read_text(encoding="utf-8")
    )
if __name__ == "sitecustomize" and "RPL_MARKED_CODES" in os.environ:
    builtins.__rpl_ran__ = _note_tests(os.environ["RPL_MARKS"])  # type: ignore[attr-defined]
    _load(
        {
            path: lambda place=place: marshal.loads(Path(place).read_bytes())  # type: ignore[misc]
            for path, place in json.loads(
                Path(os.environ["RPL_MARKED_CODES"]).read_text(encoding="utf-8")
            ).items()
        }
    )
