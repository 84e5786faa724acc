"""Catch what a pure function must not do: open files, start programs, use the network.

Python reports such deeds as audit events (PEP 578), whichever library commits them. An audit hook can't be
removed again, so there is one, and it looks only while a check is watching.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import ContractViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEDS = {
    "open": "opens a file",
    "os.exec": "runs a program",
    "os.fork": "runs a program",
    "os.posix_spawn": "runs a program",
    "os.system": "runs a program",
    "socket.__new__": "uses the network",
    "subprocess.Popen": "runs a program",
}
#: Whom the check watches, by thread.
_watched: dict[int, str] = {}


@contextmanager
def no_side_effects(subject: str) -> Iterator[None]:
    """Opening a file, starting a program or opening a socket raises ``ContractViolation``."""
    _install()
    thread = threading.get_ident()
    _watched[thread] = subject
    try:
        yield
    finally:
        del _watched[thread]


@cache
def _install() -> None:
    sys.addaudithook(_notice)


def _notice(event: str, arguments: tuple[object, ...]) -> None:
    subject = _watched.get(threading.get_ident()) if event in _DEEDS else None
    if subject is not None:
        what = f" ({arguments[0]!r})" if arguments else ""
        raise ContractViolation(
            f"{subject}: it {_DEEDS[event]}{what}, but its answer may depend on its input only"
        )
