"""``python rpl_with_a_fault.py FAULT WORDS...``: rpl, struck once at a line of the ledger or at a file.

FAULT is JSON: ``event`` (of the ledger) or ``file`` (a name that is put in place), ``when`` (``before``,
``torn``: half of the line is written, or ``after``) and ``how`` (``kill``, ``interrupt`` or ``full``).
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from pathlib import Path

from rpl_core.cli import main
from rpl_optimize.ledger.lines import Ledger

FAULT = json.loads(sys.argv[1])
_put, _write = Path.replace, Ledger._write


def strike(when: str) -> None:
    if FAULT.get("struck") or FAULT["when"] != when:
        return
    FAULT["struck"] = True
    print(f"struck {when} {FAULT.get('event') or FAULT.get('file')}", file=sys.stderr, flush=True)
    if FAULT["how"] == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.kill(os.getpid(), signal.SIGKILL if FAULT["how"] == "kill" else signal.SIGINT)


def write(ledger: Ledger, line: bytes) -> None:
    if json.loads(line)["event"] != FAULT.get("event"):
        return _write(ledger, line)
    strike("before")
    if FAULT["when"] == "torn" and not FAULT.get("struck"):
        os.write(ledger._descriptor, line[: len(line) // 2])
        strike("torn")
    _write(ledger, line)
    return strike("after")


def put(path: Path, target: Path) -> Path:
    if Path(target).name != FAULT.get("file"):
        return _put(path, target)
    strike("before")
    placed = _put(path, target)
    strike("after")
    return placed


Path.replace, Ledger._write = put, write
sys.argv = ["rpl", *sys.argv[2:]]
sys.exit(main())
