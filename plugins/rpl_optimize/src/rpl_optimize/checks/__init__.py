"""The core's own equivalence checks: the user's validation command, and the files that a run writes."""

from __future__ import annotations
