"""Put a `rocprofv3` on a directory that a test or the demo adds to PATH."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

__all__ = ["install_standin"]


def install_standin(directory: Path) -> Path:
    """Write an executable `rocprofv3` into `directory` (created if absent) and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    program = Path(__file__).with_name("launch.py")
    target = directory / "rocprofv3"
    command = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(program))}"
    target.write_text(
        f'#!/bin/sh\n# Synthetic stand-in, not the profiler of ROCm.\n{command} "$@"\n', encoding="utf-8"
    )
    target.chmod(0o755)
    return target
