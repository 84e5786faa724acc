"""What rocprofv3 calls the ranges of roctx, whatever the format (docs/reference/formats.md, 2.2)."""

from __future__ import annotations

__all__ = ["OF_PROCESS", "RANGE_DOMAINS"]

#: Newer releases have a domain for ranges, and the calls that make them in the older one.
RANGE_DOMAINS = ("MARKER_CORE_RANGE_API", "MARKER_CORE_API")
#: Between start and stop any thread may work in a range; one of push and pop is that of its thread.
OF_PROCESS = ("roctxProcessRangeA", "roctxRangeStartA")
