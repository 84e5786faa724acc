"""Put a ``hipcc`` on a directory that a test adds to PATH."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from rpl_testkit.hipcc_standin.main import KEPT_VARIABLE

__all__ = ["install_hipcc", "standin_places"]


def install_hipcc(directory: Path) -> Path:
    """Write an executable ``hipcc`` into ``directory`` (created if absent) and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    program = Path(__file__).with_name("launch.py")
    target = directory / "hipcc"
    note = "# Synthetic stand-in, not the compiler driver of ROCm."
    kept = f"{KEPT_VARIABLE}={shlex.quote(str(directory.absolute()))}"
    command = f'{kept} exec {shlex.quote(sys.executable)} {shlex.quote(str(program))} "$@"'
    target.write_text(f"#!/bin/sh\n{note}\n{command}\n", encoding="utf-8")
    target.chmod(0o755)
    return target


def standin_places() -> str:
    """What the stand-in needs to read, for the variable ``RPL_SANDBOX_READ``: Python and these packages."""
    import rpl_codeobject
    import rpl_core

    interpreter = (sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1]))
    files = (__file__, rpl_codeobject.__file__, rpl_core.__file__)
    packages = (str(Path(file).resolve().parents[1]) for file in files if file is not None)
    return os.pathsep.join((*interpreter, str(Path(__file__).resolve().parents[2]), *packages))
