"""Executables that run a function of this copy of rpl_testkit, for the programs that stand in for ROCm's."""

from __future__ import annotations

import sys
from pathlib import Path


def python_program(module: str, call: str) -> list[str]:
    """The words that make this copy of rpl_testkit run `call`, a function of `module`, in any directory."""
    root = str(Path(__file__).resolve().parents[1])
    name = call.partition("(")[0]
    # First on the path of `-c` is the working directory, whose modules are the application's.
    code = f"import sys; sys.path[0] = {root!r}; from {module} import {name}; sys.exit({call})"
    return [sys.executable, "-c", code]


def write_launcher(target: Path, note: str, command: str) -> Path:
    """Write a shell script that hands its arguments to `command`; returns `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f'#!/bin/sh\n# {note}\n{command} "$@"\n', encoding="utf-8")
    target.chmod(0o755)
    return target
