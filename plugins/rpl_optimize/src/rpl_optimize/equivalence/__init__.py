"""Whether a candidate still computes the same, and whether the checks that say so can see at all."""

from __future__ import annotations
