"""The command ``rpl`` (also ``rocm-perf`` and ``rocm-perf-lab``).

This module is imported at every start, so it imports nothing heavy: ``rpl --version`` answers from here.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Console-script entry point; returns the exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from rpl_core import __version__

        # Another program named `rpl` exists (a text replacer), hence the long name.
        print(f"rpl (ROCm Perf Lab) {__version__}")
        return 0
    from rpl_core.cli.run import run

    return run(arguments)
