"""The worker process of one device: jobs come as lines on stdin, outcomes go as lines to stdout.

Started by the executor `local` as ``python -m``, so that each device has a process with its own environment.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from rpl_core.errors import InterruptedRunError, RplError

if TYPE_CHECKING:
    from typing import TextIO

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def main(device: str) -> None:
    """Measure until stdin ends, or the process that started this one does."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # Results must not mix with what plugins print: they get stderr as their standard output.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from rpl_autotune.evaluation.run_job import run_job
    from rpl_autotune.interfaces.job import Job

    _say(answers, {"ready": device})
    for line in sys.stdin:
        try:
            _say(answers, run_job(Job.model_validate_json(line), device).model_dump(mode="json"))
        except InterruptedRunError:
            return
        except RplError as error:
            _say(answers, {"error": error.one_line(), "exit_code": int(error.exit_code)})
        except Exception as error:  # noqa: BLE001 - the process that started this one tells the user
            _say(answers, {"error": f"{type(error).__name__}: {error}", "exit_code": 70})


def _say(answers: TextIO, value: object) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
