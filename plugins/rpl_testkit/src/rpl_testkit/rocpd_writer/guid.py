"""File identities that repeat: the same seed gives the same guid."""

from __future__ import annotations

import hashlib

__all__ = ["guid_from_seed"]


def guid_from_seed(seed: str | int) -> str:
    """Return a UUIDv7-shaped text whose leading digits are small, as in files seeded by boot time.

    The profiler derives the time part from nanoseconds since boot, so it is no wall time
    (docs/reference/formats.md, 2.1).
    """
    digits = hashlib.sha256(f"rpl rocpd guid {seed}".encode()).hexdigest()
    variant = "89ab"[int(digits[4], 16) % 4]
    return f"000000{digits[:2]}-{digits[5:9]}-7{digits[9:12]}-{variant}{digits[12:15]}-{digits[15:27]}"
