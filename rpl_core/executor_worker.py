"""A worker process: tasks come as lines on stdin, answers go as lines to stdout.

Started by the executor `local` as ``python -m``, so that each device has a process with its own environment.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.process_start import collect_garbage_rarely, import_numpy_alone

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def main(place: str) -> None:
    """Work until stdin ends, or the process that started this one does."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    collect_garbage_rarely()
    import_numpy_alone()
    # Results must not mix with what plugins print: they get stderr as their standard output.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        module, name, argument = json.loads(line)
        try:
            answer = done(getattr(import_module(module), name), argument, place)
        except InterruptedRunError:
            return
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def done(function: Callable[[str, str], str], argument: str, place: str) -> dict[str, Any]:
    """The fields of an ``Answer`` to one task. Raises ``InterruptedRunError``."""
    try:
        return {"place": place, "text": function(argument, place)}
    except InterruptedRunError:
        raise
    except RplError as error:
        return {"place": place, "error": error.one_line(), "exit_code": int(error.exit_code)}
    except Exception as error:  # noqa: BLE001 - who asked for it tells the user
        return {"place": place, "error": f"{type(error).__name__}: {error}", "exit_code": 70}


if __name__ == "__main__":
    main(sys.argv[1])
