"""What rocprofv3 prints on stderr: driver lines as they are, log lines in the format of glog.

Results are announced at error level and the database at warning level although nothing is wrong; readers
must not take such lines for failures (docs/reference/formats.md, 4.6).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Final

from rpl_core.values import frozen

__all__ = ["Log", "fatal_error", "warning"]

_RANKS: Final = {"fatal": 3, "error": 2, "warning": 1, "info": 0, "trace": 0, "env": 1, "config": 1}
_LETTERS: Final = "IWEF"


def warning(text: str) -> None:
    """Print a warning of the driver script."""
    print(f"Warning: {text}", file=sys.stderr, flush=True)


def fatal_error(text: str) -> int:
    """Print a fatal error of the driver script and return its exit code."""
    print(f"Fatal error: {text}", file=sys.stderr, flush=True)
    return 1


@frozen
class Log:
    """Log lines of the tool library; lines below `level` are not printed."""

    level: str = "warning"

    def _line(self, rank: int, place: str, text: str) -> None:
        if rank < _RANKS[self.level]:
            return
        now = time.time()
        stamp = time.strftime("%Y%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
        thread = threading.get_native_id()
        print(f"{_LETTERS[rank]}{stamp} {thread} {place}] {text}", file=sys.stderr, flush=True)

    def writing_database(self, pid: int, node: int) -> None:
        """Announce the database."""
        self._line(1, "generateRocpd.cpp:581", f"writing SQL database for process {pid} on node {node}")

    def opened(self, path: os.PathLike[str], uuid: str | None = None) -> None:
        """Announce a result file; the database names its UUID."""
        suffix = f" (UUID={uuid})" if uuid else ""
        place = "generateRocpd.cpp:603" if uuid else "output_stream.cpp:111"
        self._line(2, place, f"Opened result file: {os.fspath(path)}{suffix}")

    def missing_counters(
        self, node: int, gpu: int, name: str, requested: tuple[str, ...], found: tuple[str, ...]
    ) -> None:
        """Warn about counters that the device does not have; the others are still collected."""
        missing = ", ".join(counter for counter in requested if counter not in found)
        self._line(
            1,
            "tool.cpp:1183",
            f"Unable to find all counters for agent {node} (gpu-{gpu}, {name}) in [{', '.join(requested)}]. "
            f"Found: [{', '.join(found)}]. Missing: [{missing}]",
        )

    def replay_declined(self, dispatch: int, reason: str, passes: int) -> None:
        """Say that a launch ran once although it was to be replayed."""
        self._line(
            1,
            "replay_diagnostics.cpp:126",
            f"[kernel-replay] dispatch_id={dispatch} outcome=declined reason={reason} "
            f"requested_passes={passes} executed_passes=0 footprint_bytes=0 footprint_regions=0 "
            "untracked_vmem_bytes=0 untracked_vmem_regions=0 untracked_pool_bytes=0 "
            "untracked_pool_regions=0 snap_seconds=0.0000 restore_seconds=0.0000 reentrancy=0",
        )

    def graph_not_replayed(self) -> None:
        """Warn once about graphs. The real words are not known here, only that it warns."""
        self._line(1, "queue.cpp:512", "kernel replay: HIP graph launches are not replayed; running it once")

    def sampling_not_offered(self) -> int:
        """Say that no GPU offers the asked method, unit and interval; returns the exit code."""
        text = "Given PC sampling configuration is not supported on any of the agents"
        self._line(2, "tool.cpp:1621", text)
        return 1

    def sampling_not_configured(self) -> None:
        """Say why an interval that is no power of two ends the process."""
        self._line(3, "tool.cpp:1612", "configure PC sampling failed with error code 7: Invalid argument")

    def over_capacity(self) -> None:
        """Say why an over-capacity counter set ends the process."""
        self._line(
            3,
            "tool.cpp:1192",
            "Could not construct profile cfg failed with error code 38: "
            "Request exceeds the capabilities of the hardware to collect",
        )

    def sqlite_failure(self, code: int, text: str) -> None:
        """Say why writing the database ends the process."""
        self._line(3, "common.cpp:117", f"SQLite3 error {code}: {text}")

    def decoder_failed(self, status: int) -> None:
        """Say that the trace decoder was found and could not be used; the raw trace stays."""
        self._line(3, "att_lib_wrapper.cpp:96", f"Error loading decoder: {status}")

    def data_lost(self) -> None:
        """Warn that the trace has gaps."""
        self._line(1, "att_lib_wrapper.cpp:141", "Data Lost: likely caused by bandwidth limitations")

    def caught_signal(self, pid: int, number: int) -> None:
        """Announce that results are written although the application dies."""
        handler = "rocprofv3_error_signal_handler"
        head = f"[PPID={os.getpid()}][PID={pid}][TID={pid}][{handler}]"
        self._line(1, "tool.cpp:2806", f"{head} rocprofv3 caught signal {number}...")
        self._line(1, "tool.cpp:2844", f"{head} rocprofv3 finalizing after signal {number}...")
