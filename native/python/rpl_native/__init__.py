"""The compiled parts of rpl (ROCm Perf Lab): where they are. They are no Python modules."""

from __future__ import annotations

from pathlib import Path


def path_of(name: str) -> Path:
    """The file of that name, such as ``librpl_isolate.so``, whether or not this build has it."""
    return Path(__file__).resolve().parent / "lib" / name
