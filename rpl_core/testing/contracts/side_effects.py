"""Catch what a pure function must not do: open files, start programs, use the network."""

from __future__ import annotations

import builtins
import io
import os
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from rpl_core.testing.contracts.violation import ContractViolation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def no_side_effects(subject: str) -> Iterator[None]:
    """Opening a file, starting a program or opening a socket raises ``ContractViolation``."""
    with (
        patch.object(builtins, "open", _forbidden(subject, "opens a file")),
        patch.object(io, "open", _forbidden(subject, "opens a file")),
        patch.object(os, "open", _forbidden(subject, "opens a file")),
        patch.object(os, "system", _forbidden(subject, "runs a program")),
        patch.object(subprocess, "Popen", _forbidden(subject, "runs a program")),
        patch.object(socket, "socket", _forbidden(subject, "uses the network")),
    ):
        yield


def _forbidden(subject: str, deed: str) -> Callable[..., Any]:
    def refuse(*arguments: object, **_: object) -> None:
        what = f" ({arguments[0]!r})" if arguments else ""
        raise ContractViolation(f"{subject}: it {deed}{what}, but its answer may depend on its input only")

    return refuse
