"""A stand-in for rocprofv3: a separate program that behaves like it where no AMD GPU is at hand.

It runs the application for real, invents what a GPU would have done (`scenario`), and writes the files,
names, messages and exit states of the profiler. Everything it writes is stamped synthetic. Environment:
`RPL_STANDIN_ROCM` (emulated release), `RPL_STANDIN_SCENARIO` (JSON or Python file), `RPL_STANDIN_SEED`,
`RPL_STANDIN_STATE` (counter file), `RPL_STANDIN_MISBEHAVE` (see `main`),
`RPL_STANDIN_TIMING_MODEL` (JSON file with declared times, noise and drift, see `scenario`). `ready` keeps it
started for tests that need many runs.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from rpl_testkit.launchers import python_program, write_launcher


def install_standin(directory: Path) -> Path:
    """Write an executable `rocprofv3` into `directory` (created if absent) and return its path."""
    words = python_program("rpl_testkit.rocprofv3_standin.main", "main(sys.argv[1:])")
    note = "Synthetic stand-in, not the profiler of ROCm."
    return write_launcher(directory / "rocprofv3", note, f"exec {shlex.join(words)}")
