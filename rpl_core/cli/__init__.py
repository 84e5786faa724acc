"""The command ``rpl`` (also ``rocm-perf`` and ``rocm-perf-lab``).

This module is imported at every start, so it imports nothing heavy: ``rpl --version`` answers from here.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Console-script entry point; returns the exit code."""
    try:
        return _answer(sys.argv[1:])
    except KeyboardInterrupt:  # Ctrl-C while the program was still being loaded
        return 130


def _answer(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from rpl_core import __version__
        from rpl_core.cli.standard_output import print_result

        # Another program named `rpl` exists (a text replacer), hence the long name.
        return print_result(f"rpl (ROCm Perf Lab) {__version__}")
    from rpl_core.process_start import collect_garbage_rarely

    collect_garbage_rarely()
    from rpl_core.cli.main import run
    from rpl_core.cli.standard_output import keep_for_results, settle_exit_code
    from rpl_core.process_start import treat_termination_as_interrupt

    treat_termination_as_interrupt()
    keep_for_results()
    return settle_exit_code(run(arguments))
