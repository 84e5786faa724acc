"""Kernel replay on the command line: what it needs and what it does not go with.

Words of refusals are those of rocprofv3.py of rocprofiler-sdk 1.4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rpl_testkit.rocprofv3_standin.request.pc_sampling import BETA_VARIABLE

__all__ = ["ReplayError", "replay_wanted"]


class ReplayError(Exception):
    """The options don't go together; the text is what the profiler prints after `Fatal error:`."""


def replay_wanted(
    options: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], environment: Mapping[str, str]
) -> bool:
    """Whether launches are replayed. ReplayError where that can't be."""
    if options.get("replay_mode") != "kernel":
        return False
    if not options.get("kernel_replay_beta_enabled"):
        raise ReplayError(
            "--replay-mode kernel requires acknowledgement that kernel replay is a beta "
            "feature via --kernel-replay-beta-enabled"
        )
    if not options.get("pmc") and not any(job.get("pmc") or job.get("pmc_groups") for job in jobs):
        raise ReplayError(
            "--replay-mode kernel requires counter collection (--pmc, input-file pmc, or pmc_groups)"
        )
    conflicts = ["--att"] if options.get("advanced_thread_trace") else []
    if options.get("pc_sampling_beta_enabled") or BETA_VARIABLE in environment:
        conflicts.append("PC sampling")
    if conflicts:
        raise ReplayError(
            f"--replay-mode kernel cannot be combined with {' or '.join(conflicts)}. Kernel replay only "
            "varies counter groups from one pass to the next; every other service stays on for all of the "
            "passes and would report each kernel once per pass. Collect them in a separate run."
        )
    return True
